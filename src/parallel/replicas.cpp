// SPDX-License-Identifier: Apache-2.0
#include "parallel/replicas.hpp"

#include <string>
#include <vector>

#include "tutti/core/error.hpp"

namespace tutti::parallel {

namespace {

// One line an entry; the ranks' texts are compared line by line.
std::string describe(nn::ModuleBase& module) {
  std::string text;
  for (const nn::NamedTensor& entry : module.named_parameters()) {
    text += concat("parameter ", entry.name, " ", entry.tensor.dtype(), " ", entry.tensor.sizes(),
                   entry.tensor.requires_grad() ? " requires_grad" : " frozen", "\n");
  }
  for (const nn::NamedTensor& entry : module.named_buffers()) {
    text += concat("buffer ", entry.name, " ", entry.tensor.dtype(), " ", entry.tensor.sizes(), "\n");
  }
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return lines;
}

}  // namespace

void check_replicas(nn::ModuleBase& module, comm::ProcessGroup& group) {
  const std::vector<std::string> all = group.exchange(describe(module));
  const std::vector<std::string> expected = lines_of(all[0]);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    const std::vector<std::string> given = lines_of(all[rank]);
    std::size_t i = 0;
    while (i < expected.size() && i < given.size() && expected[i] == given[i]) ++i;
    const auto side = [i](const std::vector<std::string>& lines) {
      return i < lines.size() ? lines[i] : std::string("no further entry");
    };
    throw ModuleError(concat("DistributedDataParallel: the ranks' modules differ. Entry ", i,
                             " of rank 0: ", side(expected), " (", expected.size(), " entries); of rank ",
                             rank, ": ", side(given), " (", given.size(), " entries)"));
  }
}

void broadcast_tensors(const std::vector<Tensor>& tensors, comm::ProcessGroup& group) {
  std::vector<comm::Work> works;
  works.reserve(tensors.size());
  for (const Tensor& tensor : tensors) works.push_back(group.broadcast(tensor.detach(), 0));
  for (const comm::Work& work : works) work.wait();
}

}  // namespace tutti::parallel
