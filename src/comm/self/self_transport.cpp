// SPDX-License-Identifier: Apache-2.0
#include "comm/self/self_transport.hpp"

#include <cstring>

#include "tutti/core/error.hpp"

namespace tutti::comm {

void SelfTransport::reduce_scatter(const Contract& contract, void* out, const void* in) {
  if (out != in && contract.bytes() > 0) std::memcpy(out, in, contract.bytes());
}

void SelfTransport::all_gather(const Contract& contract, void* out, const void* in) {
  if (out != in && contract.bytes() > 0) std::memcpy(out, in, contract.bytes());
}

std::unique_ptr<Transfer> SelfTransport::send(const Message& message) {
  tutti::detail::fail<CommError>(to_text(message.contract), ": a group of one has nobody to send to");
}

std::unique_ptr<Transfer> SelfTransport::receive(const Message& message) {
  tutti::detail::fail<CommError>(to_text(message.contract), ": a group of one has nobody to receive from");
}

}  // namespace tutti::comm
