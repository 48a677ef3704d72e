// SPDX-License-Identifier: Apache-2.0
#include "parallel/replicas.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tensor/raw.hpp"
#include "tutti/core/error.hpp"
#include "tutti/tensor/factories.hpp"

namespace tutti::parallel {

namespace {

// How the gradient's place in a bucket is laid out. A dim of size 1 has the stride that it has where all is in row-major order:
// no element is reached by it.
Dims layout_of(const Tensor& parameter) {
  Dims strides = raw::contiguous_strides(parameter.sizes());
  if (!raw::is_dense(parameter) || parameter.numel() == 0) return strides;
  for (int d = 0; d < strides.size(); ++d) {
    if (parameter.size(d) != 1) strides[d] = parameter.strides()[d];
  }
  return strides;
}

// One line an entry; the ranks' texts are compared line by line.
std::string describe(nn::ModuleBase& module) {
  std::string text;
  for (const nn::NamedTensor& entry : module.named_parameters()) {
    text +=
        concat("parameter ", entry.name, " ", entry.tensor.dtype(), " ", entry.tensor.sizes(), " strides ",
               layout_of(entry.tensor), entry.tensor.requires_grad() ? " requires_grad" : " frozen", "\n");
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

namespace {

// A larger tensor is not worth the copies.
constexpr std::size_t kTogetherBytes = std::size_t{64} << 10U;

// Sends tensors of one dtype in one piece.
class Parcel {
 public:
  explicit Parcel(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
    std::int64_t numel = 0;
    for (const Tensor& tensor : tensors_) numel += tensor.numel();
    flat_ = empty({numel}, tensors_.front().dtype(), tensors_.front().device());
  }
  void send(comm::ProcessGroup& group) {
    if (group.rank() == 0) {
      each_part([](const Tensor& part, const Tensor& tensor) { raw::copy(part, tensor); });
    }
    work_ = group.broadcast(flat_, 0);
  }
  void unpack(const comm::ProcessGroup& group) {
    work_.wait();
    if (group.rank() == 0) return;
    each_part([](const Tensor& part, const Tensor& tensor) {
      raw::copy(tensor, part);
      raw::bump_version(tensor);
    });
  }

 private:
  template <class Function>
  void each_part(const Function& function) const {
    std::int64_t begin = 0;
    for (const Tensor& tensor : tensors_) {
      const Tensor part = raw::slice(flat_, 0, begin, begin + tensor.numel(), 1);
      function(raw::as_strided(part, tensor.sizes(), raw::contiguous_strides(tensor.sizes())), tensor);
      begin += tensor.numel();
    }
  }

  std::vector<Tensor> tensors_;
  Tensor flat_;
  comm::Work work_;
};

}  // namespace

void broadcast_tensors(const std::vector<Tensor>& tensors, comm::ProcessGroup& group) {
  if (group.size() == 1) return;
  std::vector<comm::Work> works;
  std::map<DType, std::vector<Tensor>> small;
  for (const Tensor& tensor : tensors) {
    const Tensor data = tensor.detach();
    if (static_cast<std::size_t>(data.numel()) * data.element_size() > kTogetherBytes) {
      works.push_back(group.broadcast(data, 0));
    } else {
      small[data.dtype()].push_back(data);
    }
  }
  std::vector<Parcel> parcels;
  for (auto& [unused_dtype, members] : small) parcels.emplace_back(std::move(members)).send(group);
  for (Parcel& parcel : parcels) parcel.unpack(group);
  for (const comm::Work& work : works) work.wait();
}

}  // namespace tutti::parallel
