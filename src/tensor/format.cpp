// SPDX-License-Identifier: Apache-2.0
// The layout follows torch/_tensor_str.py: one number format for all elements, four decimals, lines of 80
// characters, beyond 1,000 elements only the first and last three along each dim.
#include "tensor/format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tensor/raw.hpp"

namespace tutti::detail {

namespace {

constexpr std::int64_t kThreshold = 1000;
constexpr std::int64_t kEdge = 3;
constexpr std::size_t kLineWidth = 80;
constexpr const char* kOpening = "tensor(";

// One format for all elements of a tensor.
class NumberFormat {
 public:
  explicit NumberFormat(const std::vector<Scalar>& values) {
    bool integers = true;
    double least = INFINITY;
    double greatest = 0;
    for (const Scalar& value : values) {
      const double magnitude = std::abs(value.to_double());
      if (!value.is_floating_point() || !std::isfinite(magnitude) || magnitude == 0) continue;
      integers = integers && magnitude == std::ceil(magnitude);
      least = std::min(least, magnitude);
      greatest = std::max(greatest, magnitude);
    }
    const bool wide = greatest > 0 && (greatest / least > 1000 || greatest > 1e8);
    if (wide || (!integers && least < 1e-4)) {
      style_ = Style::kScientific;
    } else if (!integers) {
      style_ = Style::kDecimals;
    }
    for (const Scalar& value : values) width_ = std::max(width_, bare(value).size());
  }

  std::size_t width() const noexcept { return width_; }
  std::string operator()(Scalar value) const { return fmt::format("{:>{}}", bare(value), width_); }

 private:
  enum class Style { kWhole, kDecimals, kScientific };

  std::string bare(Scalar value) const {
    if (value.kind() == Scalar::Kind::kBool) return value.to<bool>() ? "true" : "false";
    if (value.kind() == Scalar::Kind::kInteger) return fmt::format("{}", value.to_int64());
    const double number = value.to_double();
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
    switch (style_) {
      case Style::kWhole: return fmt::format("{:.0f}.", number);
      case Style::kDecimals: return fmt::format("{:.4f}", number);
      case Style::kScientific: break;
    }
    return fmt::format("{:.4e}", number);
  }

  Style style_ = Style::kWhole;
  std::size_t width_ = 0;
};

// Walks the elements that are shown, in row-major order.
class Printer {
 public:
  explicit Printer(const Tensor& host)
      : impl_(*host.impl()), summarized_(impl_.numel > kThreshold), format_(values(host)) {}

  std::string print() { return print_dim(0, impl_.data, std::char_traits<char>::length(kOpening)); }

 private:
  bool is_cut(int d) const { return summarized_ && impl_.sizes[d] > 2 * kEdge; }
  std::byte* element(int d, std::byte* data, std::int64_t index) const {
    return data + index * impl_.strides[d] * static_cast<std::int64_t>(size_of(impl_.dtype));
  }
  // Calls f(index) for each index of dim d that is shown; f(-1) stands for the gap.
  template <class F>
  void for_each_shown(int d, const F& f) const {
    const std::int64_t size = impl_.sizes[d];
    for (std::int64_t i = 0; i < size; ++i) {
      if (is_cut(d) && i == kEdge) {
        f(-1);
        i = size - kEdge;
      }
      f(i);
    }
  }

  std::vector<Scalar> values(const Tensor&) const {
    std::vector<Scalar> shown;
    collect(0, impl_.data, shown);
    return shown;
  }
  void collect(int d, std::byte* data, std::vector<Scalar>& shown) const {
    if (d == impl_.sizes.size()) {
      shown.push_back(read_scalar(data, impl_.dtype));
      return;
    }
    for_each_shown(d, [&](std::int64_t i) {
      if (i >= 0) collect(d + 1, element(d, data, i), shown);
    });
  }

  std::string print_dim(int d, std::byte* data, std::size_t indent) const {
    const int left = impl_.sizes.size() - d;
    if (left == 0) return format_(read_scalar(data, impl_.dtype));
    if (left == 1) return print_row(d, data, indent);
    const std::string separator =
        concat(",", std::string(static_cast<std::size_t>(left - 1), '\n'), std::string(indent + 1, ' '));
    std::string text = "[";
    for_each_shown(d, [&](std::int64_t i) {
      if (text.size() > 1) text += separator;
      text += i < 0 ? "..." : print_dim(d + 1, element(d, data, i), indent + 1);
    });
    return text + "]";
  }

  std::string print_row(int d, std::byte* data, std::size_t indent) const {
    const std::size_t room = kLineWidth > indent ? kLineWidth - indent : 1;
    const std::size_t per_line = std::max<std::size_t>(room / (format_.width() + 2), 1);
    std::string text = "[";
    std::size_t count = 0;
    for_each_shown(d, [&](std::int64_t i) {
      if (count > 0)
        text += count % per_line == 0 ? concat(",\n", std::string(indent + 1, ' ')) : std::string(", ");
      text += i < 0 ? " ..." : format_(read_scalar(element(d, data, i), impl_.dtype));
      ++count;
    });
    return text + "]";
  }

  const TensorImpl& impl_;
  const bool summarized_;
  const NumberFormat format_;
};

}  // namespace

std::string format_tensor(const Tensor& tensor) {
  std::string text = kOpening;
  if (tensor.numel() == 0) {
    text += "[]";
    if (tensor.dim() != 1) text += concat(", size=", tensor.sizes());
  } else {
    Tensor host = tensor;
    if (!tensor.device().is_cpu()) {
      host = empty(tensor.sizes(), tensor.dtype());
      raw::copy(host, tensor);
    }
    text += Printer(host).print();
  }
  if (tensor.dtype() != DType::kFloat32) text += concat(", dtype=", tensor.dtype());
  if (!tensor.device().is_cpu()) text += concat(", device=", tensor.device());
  if (tensor.impl()->requires_grad) text += ", requires_grad=true";
  return text + ")";
}

}  // namespace tutti::detail
