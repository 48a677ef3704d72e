// SPDX-License-Identifier: Apache-2.0
// The meeting place of env://, on a thread of rank 0. A rank gives a part under a key; once all parts are there each rank gets
// all of them.
//
//   hello    "TUTTI1" token                            first frame of a connection; anything else ends it
//   request  'X' key 0 rank 0 size 0 part              answer, once all have come: 'A' key 0, then for each rank length and part
//            'M' key                                   answer: 'M' key 0 and the ranks that have not come, "1 4 5"
//
// A key is used once. Answers repeat it, since one may come after its request has been given up.
#pragma once

#include <chrono>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "comm/tcp/socket.hpp"

namespace tutti::comm {

class Store {
 public:
  Store(const std::string& port, std::string token);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  static std::string hello(const std::string& token) { return "TUTTI1" + token; }

 private:
  struct Connection {
    Socket socket;
    std::string input;
    std::string output;
    bool is_known = false;  // has said hello
    bool is_broken = false;
    std::chrono::steady_clock::time_point accepted;
  };
  struct Meeting {
    std::map<int, std::string> parts;
    std::vector<Connection*> waiting;
    int size = 0;
  };

  void serve() noexcept;
  void accept_all();
  void read_from(Connection& connection);
  void handle(Connection& connection, const std::string& frame);
  void handle_part(Connection& connection, const std::string& frame);
  void handle_missing(Connection& connection, const std::string& frame);
  void drop(Connection& connection);

  std::string token_;
  Socket listener_;
  int wake_[2] = {-1, -1};  // a pipe that ends the thread
  std::list<Connection> connections_;
  std::map<std::string, Meeting> meetings_;
  std::chrono::steady_clock::time_point accepts_again_;  // after a pause, if the system refuses connections
  std::thread thread_;
};

}  // namespace tutti::comm
