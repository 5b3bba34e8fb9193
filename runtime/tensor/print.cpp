// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/print.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>
#include <vector>

namespace lockstep {

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::int64_t kMostElements = 1000;
constexpr std::int64_t kAtEachEnd = 3;
constexpr const char* kOpening = "tensor(";

std::string formatted(const char* format, double value) {
  char text[400];  // the largest float64 has 309 digits
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// The indices along a dimension that are shown, with -1 for those that are left out.
std::vector<std::int64_t> shown(std::int64_t size, bool shortened) {
  std::vector<std::int64_t> indices;
  const bool skips = shortened && size > 2 * kAtEachEnd;
  for (std::int64_t i = 0; i < size; ++i) {
    if (skips && i == kAtEachEnd) {
      indices.push_back(-1);
      i = size - kAtEachEnd;
    }
    indices.push_back(i);
  }
  return indices;
}

/// Prints the elements of a tensor. The form of a number follows from all numbers that are shown, as in PyTorch.
class Printer {
 public:
  explicit Printer(const Tensor& tensor)
      : shortened_(tensor.numel() > kMostElements),
        // From a large tensor on a device the shown elements are copied one by one.
        tensor_(shortened_ ? tensor.detach() : tensor.detach().to(kCpu)) {
    collect(0, 0);
    if (is_floating(tensor_.dtype())) choose_form();
    for (const double value : values_) {
      const bool counts = !is_floating(tensor_.dtype()) || (std::isfinite(value) && value != 0);
      if (counts) width_ = std::max(width_, number(value).size());
    }
    for (const std::string& text : whole_numbers_) width_ = std::max(width_, text.size());
  }

  std::string text() { return part(0, std::string(kOpening).size()); }

 private:
  const Shape& shape() const { return tensor_.shape(); }

  /// Collects the numbers that are shown, from dimension d on, in the order in which part() shows them.
  void collect(int d, std::int64_t offset) {
    if (d == shape().rank()) return collect(offset);
    std::int64_t stride = 1;
    for (int i = d + 1; i < shape().rank(); ++i) stride *= shape()[i];
    for (const std::int64_t i : shown(shape()[d], shortened_)) {
      if (i >= 0) collect(d + 1, offset + i * stride);
    }
  }
  void collect(std::int64_t offset) {
    if (tensor_.dtype() != DType::kInt64) return values_.push_back(tensor_.item(offset));
    // A float64 has fewer digits.
    const Tensor element = tensor_.detach({tensor_.numel()}).detach_rows(offset, offset + 1).to(kCpu);
    whole_numbers_.push_back(std::to_string(element.as<std::int64_t>()[0]));
  }

  void choose_form() {
    double least = 0, most = 0;
    for (const double value : values_) {
      if (!std::isfinite(value) || value == 0) continue;
      const double size = std::abs(value);
      least = least == 0 ? size : std::min(least, size);
      most = std::max(most, size);
      whole_ = whole_ && value == std::ceil(value);
    }
    scientific_ = most > 0 && (most / least > 1000 || most > 1e8 || least < 1e-4);
  }

  std::string number(double value) const {
    if (tensor_.dtype() == DType::kBool) return value != 0 ? "True" : "False";
    if (!is_floating(tensor_.dtype())) return formatted("%.0f", value);
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    if (scientific_) return formatted("%.4e", value);
    return whole_ ? formatted("%.0f", value) + "." : formatted("%.4f", value);
  }

  std::string next() {
    const std::string text = whole_numbers_.empty() ? number(values_[next_]) : whole_numbers_[next_];
    ++next_;
    return std::string(width_ > text.size() ? width_ - text.size() : 0, ' ') + text;
  }

  /// The elements that come next, from dimension d on; lines after the first begin behind column `column`.
  std::string part(int d, std::size_t column) {
    if (d == shape().rank()) return next();
    const std::string margin(column + 1, ' ');
    const bool innermost = d + 1 == shape().rank();
    const std::size_t room = kColumns > column ? kColumns - column : 0;
    const std::size_t a_line = std::max<std::size_t>(1, room / (width_ + 2));
    const std::string between =
        innermost ? ", " : ',' + std::string(static_cast<std::size_t>(shape().rank() - d - 1), '\n') + margin;
    std::string text = "[";
    std::size_t count = 0;
    for (const std::int64_t i : shown(shape()[d], shortened_)) {
      if (count > 0) text += innermost && count % a_line == 0 ? ",\n" + margin : between;
      text += i < 0 ? (innermost ? " ..." : "...") : part(d + 1, column + 1);
      ++count;
    }
    return text + "]";
  }

  const bool shortened_;
  const Tensor tensor_;
  std::vector<double> values_;
  std::vector<std::string> whole_numbers_;  ///< in place of values_, of an int64 tensor
  std::size_t next_ = 0;
  bool whole_ = true;
  bool scientific_ = false;
  std::size_t width_ = 1;
};

/// The text behind the elements.
std::vector<std::string> properties_of(const Tensor& tensor) {
  std::vector<std::string> properties;
  const bool empty = tensor.numel() == 0;
  if (tensor.device() != kCpu) properties.push_back("device='" + str(tensor.device()) + "'");
  if (empty && tensor.shape().rank() != 1) {
    std::string size;
    for (int d = 0; d < tensor.shape().rank(); ++d) {
      size += (d > 0 ? ", " : "") + std::to_string(tensor.shape()[d]);
    }
    properties.push_back("size=(" + size + ")");
  }
  const DType dtype = tensor.dtype();
  const bool usual = dtype == DType::kFloat32 || (!empty && (dtype == DType::kInt64 || dtype == DType::kBool));
  if (!usual) properties.push_back("dtype=" + std::string(name_of(dtype)));
  if (tensor.requires_grad()) properties.emplace_back("requires_grad=True");
  return properties;
}

}  // namespace

std::string to_text(const Tensor& tensor) {
  if (!tensor.defined()) return describe(tensor);
  std::string text = kOpening + (tensor.numel() == 0 ? "[]" : Printer(tensor).text());
  const std::string margin(std::string(kOpening).size(), ' ');
  std::size_t line = text.size() - (text.rfind('\n') + 1) + 2;
  for (const std::string& property : properties_of(tensor)) {
    const bool fits = line + property.size() + 2 <= kColumns;
    text += (fits ? ", " : ",\n" + margin) + property;
    line = fits ? line + property.size() + 2 : margin.size() + property.size();
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) { return out << to_text(tensor); }

}  // namespace lockstep
