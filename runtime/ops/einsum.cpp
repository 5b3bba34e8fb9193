// SPDX-License-Identifier: Apache-2.0
// Contractions of two operands at a time: sums over what only one of them has, then one batched matrix product.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "runtime/autograd/cast.h"
#include "runtime/base/error.h"
#include "runtime/ops/linear.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/products.h"
#include "runtime/ops/promoted.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/without_autocast.h"

namespace lockstep::ops {

namespace {

/// A name for each dimension: a letter, or a number from 1 on for those of an ellipsis, the last of which is 1.
using Labels = std::string;
/// Stands for all dimensions of an ellipsis as long as nobody knows how many there are.
constexpr char kEllipsis = '.';

bool has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

/// A tensor with named dimensions.
struct Labelled {
  Tensor x;
  Labels labels;

  /// Leaves the diagonal of dimensions that share a label.
  void take_diagonals() {
    for (std::size_t d = 0; d < labels.size();) {
      const std::size_t again = labels.find(labels[d], d + 1);
      if (again == Labels::npos) {
        ++d;
        continue;
      }
      std::vector<int> order{static_cast<int>(d), static_cast<int>(again)};
      Labels left{labels[d]};
      std::vector<std::int64_t> extents{x.size(order[0])};
      for (std::size_t other = 0; other < labels.size(); ++other) {
        if (other == d || other == again) continue;
        order.push_back(static_cast<int>(other));
        left += labels[other];
        extents.push_back(x.size(static_cast<int>(other)));
      }
      const std::int64_t n = extents[0];
      extents[0] = n * n;
      x = slice(reshape(permute(x, order), Shape(extents)), 0, 0, n * n, n + 1);
      labels = left;
      d = 0;
    }
  }

  /// Drops the dimensions of extent 1 whose label has another extent: multiplying broadcasts them.
  void drop_broadcast(const std::map<char, std::int64_t>& extents) {
    Labels left;
    std::vector<std::int64_t> shape;
    for (std::size_t d = 0; d < labels.size(); ++d) {
      const std::int64_t extent = x.size(static_cast<int>(d));
      if (extent != extents.at(labels[d])) continue;
      left += labels[d];
      shape.push_back(extent);
    }
    if (left != labels) x = reshape(x, Shape(shape));
    labels = left;
  }

  bool has_lone(const Labels& other, const Labels& result) const {
    return std::ranges::any_of(labels, [&](char label) { return !has(other, label) && !has(result, label); });
  }

  /// Sums over the labels that neither of two others has.
  void sum_lone(const Labels& other, const Labels& result) {
    std::vector<int> lone;
    Labels left;
    for (std::size_t d = 0; d < labels.size(); ++d) {
      if (has(other, labels[d]) || has(result, labels[d])) {
        left += labels[d];
      } else {
        lone.push_back(static_cast<int>(d));
      }
    }
    if (!lone.empty()) x = sum(x, lone);
    labels = left;
  }

  /// In this order; no copy where it is that already.
  Tensor ordered(const Labels& order) const {
    if (order == labels) return x;
    std::vector<int> dims;
    for (const char label : order) dims.push_back(static_cast<int>(labels.find(label)));
    return permute(x, dims);
  }
};

using LabelExtents = std::map<char, std::int64_t>;

std::int64_t product_of(const LabelExtents& extents, const Labels& labels) {
  std::int64_t product = 1;
  for (const char label : labels) product *= extents.at(label);
  return product;
}

Tensor contract(Labelled a, Labelled b, const Labels& result) {
  const DType dtype = a.x.dtype();
  if (a.has_lone(b.labels, result) || b.has_lone(a.labels, result)) {
    // Sums taken before the product are not rounded in between.
    for (Labelled* operand : {&a, &b}) operand->x = autograd::cast(operand->x, wide_of(dtype));
  }
  const Labels labels_of_a = a.labels;
  a.sum_lone(b.labels, result);
  b.sum_lone(labels_of_a, result);
  LabelExtents extents;
  for (const Labelled* operand : {&a, &b}) {
    for (std::size_t d = 0; d < operand->labels.size(); ++d) {
      extents[operand->labels[d]] = operand->x.size(static_cast<int>(d));
    }
  }
  Labels batch, summed, of_a, of_b;
  for (const char label : a.labels) (!has(b.labels, label) ? of_a : has(result, label) ? batch : summed) += label;
  for (const char label : b.labels) {
    if (!has(a.labels, label)) of_b += label;
  }
  const std::int64_t m = product_of(extents, of_a), n = product_of(extents, of_b), k = product_of(extents, summed),
                     batches = product_of(extents, batch);
  const Tensor left = a.ordered(batch + of_a + summed);
  const Tensor right = b.ordered(batch + summed + of_b);
  const Tensor product = batch.empty() ? matmul(reshape(left, {m, k}), reshape(right, {k, n}))
                                       : matmul(reshape(left, {batches, m, k}), reshape(right, {batches, k, n}));
  const Labels order = batch + of_a + of_b;
  std::vector<std::int64_t> shape;
  for (const char label : order) shape.push_back(extents.at(label));
  return autograd::cast(Labelled{reshape(product, Shape(shape)), order}.ordered(result), dtype);
}

struct Equation {
  std::vector<Labels> operands;
  Labels result;
  bool names_result = true;  ///< otherwise the result has what occurs once

  /// The labels of all operands, one operand after the other.
  Labels all() const {
    Labels labels;
    for (const Labels& operand : operands) labels += operand;
    return labels;
  }
};

[[noreturn]] void refuse(std::string_view equation, const std::string& why) {
  throw UsageError(fmt::format("einsum \"{}\": {}", equation, why));
}

/// The letters of one operand or of the result, with kEllipsis for "...".
Labels labels_of(std::string_view equation, std::string_view text) {
  Labels labels;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char label = text[i];
    if (text.substr(i, 3) == "...") {
      if (has(labels, kEllipsis)) refuse(equation, fmt::format("two ellipses in \"{}\"", text));
      labels += kEllipsis;
      i += 2;
    } else if ((label >= 'a' && label <= 'z') || (label >= 'A' && label <= 'Z')) {
      labels += label;
    } else {
      refuse(equation, fmt::format("'{}' is no label; labels are letters", label));
    }
  }
  return labels;
}

Equation parsed(std::string_view equation, std::size_t operands) {
  std::string text;
  for (const char c : equation) {
    if (c != ' ') text += c;
  }
  const std::size_t arrow = text.find("->");
  Equation result{{}, {}, arrow != std::string::npos};
  std::string_view rest = std::string_view(text).substr(0, arrow);
  while (true) {
    const std::size_t comma = rest.find(',');
    result.operands.push_back(labels_of(equation, rest.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  if (result.operands.size() != operands) {
    refuse(equation, fmt::format("it names {} operands, and {} are given", result.operands.size(), operands));
  }
  if (result.names_result) result.result = labels_of(equation, std::string_view(text).substr(arrow + 2));
  const Labels all = result.all();
  for (const char label : result.result) {
    if (label != kEllipsis && !has(all, label)) {
      refuse(equation, fmt::format("no operand has the result's label '{}'", label));
    }
    if (std::ranges::count(result.result, label) > 1) {
      refuse(equation, fmt::format("the result names '{}' twice", label));
    }
  }
  return result;
}

/// The number of dimensions of x for which an ellipsis stands; 0 where there is none.
std::size_t of_ellipsis(std::string_view equation, const Labels& labels, const Tensor& x) {
  const auto rank = static_cast<std::size_t>(x.shape().rank());
  const bool some = has(labels, kEllipsis);
  const std::size_t named = labels.size() - (some ? 1 : 0);
  if (some ? rank < named : rank != named) {
    refuse(equation, fmt::format("its {} labels{} do not name the dimensions of {}", named,
                                 some ? " and an ellipsis" : "", describe(x)));
  }
  return rank - named;
}

/// The labels with a name for each of `dims` dimensions of the ellipsis, so that the last ones of all operands meet.
Labels expanded(Labels labels, std::size_t dims) {
  const std::size_t at = labels.find(kEllipsis);
  if (at == Labels::npos) return labels;
  Labels names;
  for (std::size_t d = dims; d > 0; --d) names += static_cast<char>(d);
  return labels.replace(at, 1, names);
}

/// The extent of each label over all operands, 1 being broadcast. Throws ShapeError where they differ.
LabelExtents extents_of(std::string_view equation, const std::vector<Labelled>& operands, const Labels& ellipsis) {
  LabelExtents extents;
  for (const Labelled& operand : operands) {
    LabelExtents own;
    for (std::size_t d = 0; d < operand.labels.size(); ++d) {
      const char label = operand.labels[d];
      const std::int64_t extent = operand.x.size(static_cast<int>(d));
      // A diagonal has one extent; between operands, 1 is broadcast.
      const auto [of_label, is_new] = own.emplace(label, extent);
      const auto [known, is_first] = extents.emplace(label, extent);
      if (of_label->second != extent || (known->second != extent && known->second != 1 && extent != 1)) {
        std::string all;
        for (const Labelled& each : operands) all += (all.empty() ? "" : " and ") + describe(each.x);
        throw ShapeError(fmt::format(
            "einsum \"{}\" of {}: {} has the extents {} and {}", equation, all,
            has(ellipsis, label) ? std::string("a dimension of the ellipsis") : fmt::format("label '{}'", label),
            of_label->second != extent ? of_label->second : known->second, extent));
      }
      if (known->second == 1) known->second = extent;
    }
  }
  return extents;
}

/// The labels of a and b that the result or a later operand has, in the order of a, then b.
Labels kept(const Labels& a, const Labels& b, const Labels& result, const std::vector<Labelled>& operands,
            std::size_t later) {
  Labels needed = result;
  for (std::size_t i = later; i < operands.size(); ++i) needed += operands[i].labels;
  Labels labels;
  for (const char label : a + b) {
    if (has(needed, label) && !has(labels, label)) labels += label;
  }
  return labels;
}

/// One operand, summed over what the result lacks.
Tensor reduced(Labelled operand, const Labels& result) {
  const DType dtype = operand.x.dtype();
  if (operand.has_lone({}, result)) operand.x = autograd::cast(operand.x, wide_of(dtype));
  operand.sum_lone({}, result);
  return autograd::cast(operand.ordered(result), dtype);
}

}  // namespace

Tensor einsum(std::string_view equation, const std::vector<Tensor>& given) {
  const Equation names = parsed(equation, given.size());
  std::vector<Labelled> operands;
  for (std::size_t i = 0; i < given.size(); ++i) {
    operands.push_back({amp::autocast(amp::Op::kEinsum, given[i],
                                      given.size() == 2 && i == 0 ? "the first operand"
                                      : given.size() == 2         ? "the second operand"
                                                                  : "an operand"),
                        names.operands[i]});
  }
  std::size_t most = 0;
  for (Labelled& operand : operands) {
    const std::size_t dims = of_ellipsis(equation, operand.labels, operand.x);
    operand.labels = expanded(operand.labels, dims);
    most = std::max(most, dims);
  }
  const Labels ellipsis = expanded({kEllipsis}, most);
  Labels result = ellipsis;
  if (names.names_result) {
    result = expanded(names.result, ellipsis.size());
  } else {
    const Labels all = names.all();
    Labels once;
    for (const char label : all) {
      if (label != kEllipsis && std::ranges::count(all, label) == 1) once += label;
    }
    std::ranges::sort(once);
    result += once;
  }
  const LabelExtents extents = extents_of(equation, operands, ellipsis);
  const WithoutAutocast as_they_are;
  for (Labelled& operand : operands) {
    operand.take_diagonals();
    operand.drop_broadcast(extents);
  }
  if (operands.size() == 1) return reduced(operands.front(), result);
  Labelled product = operands.front();
  for (std::size_t i = 1; i < operands.size(); ++i) {
    const bool last = i + 1 == operands.size();
    const Labels labels = last ? result : kept(product.labels, operands[i].labels, result, operands, i + 1);
    product = {contract(product, operands[i], labels), labels};
  }
  return product.x;
}

Tensor einsum(std::string_view equation, const Tensor& a, const Tensor& b) { return einsum(equation, {a, b}); }

Tensor tensordot(const Tensor& first, const Tensor& second, const Dims& dims_of_a, const Dims& dims_of_b) {
  const auto [a, b] = Operands(amp::Op::kTensordot, first, second);
  const auto& list_a = dims_of_a.list();
  const auto& list_b = dims_of_b.list();
  if (list_a.size() != list_b.size()) {
    throw ShapeError(
        fmt::format("tensordot: {} dimensions of the one and {} of the other", list_a.size(), list_b.size()));
  }
  if (!list_a.empty()) {
    dims_of("tensordot", dims_of_a, a);
    dims_of("tensordot", dims_of_b, b);
  }
  Labels of_a, of_b;
  for (int d = 0; d < a.shape().rank(); ++d) of_a += static_cast<char>('a' + d);
  for (int d = 0; d < b.shape().rank(); ++d) of_b += static_cast<char>('A' + d);
  for (std::size_t i = 0; i < list_a.size(); ++i) {
    const int in_a = dim_of("tensordot", list_a[i], a);
    const int in_b = dim_of("tensordot", list_b[i], b);
    if (a.size(in_a) != b.size(in_b)) {
      throw ShapeError(
          fmt::format("tensordot of {} and {}: dimensions {} and {} differ", describe(a), describe(b), in_a, in_b));
    }
    of_b[static_cast<std::size_t>(in_b)] = of_a[static_cast<std::size_t>(in_a)];
  }
  Labels result;
  for (const char label : of_a) {
    if (!has(of_b, label)) result += label;
  }
  for (const char label : of_b) {
    if (!has(of_a, label)) result += label;
  }
  const WithoutAutocast as_they_are;
  return contract({a, of_a}, {b, of_b}, result);
}

Tensor tensordot(const Tensor& a, const Tensor& b, int dims) {
  if (dims < 0 || dims > std::min(a.shape().rank(), b.shape().rank())) {
    throw ShapeError(fmt::format("tensordot of {} and {} over {} dimensions", describe(a), describe(b), dims));
  }
  std::vector<int> of_a, of_b;
  for (int d = 0; d < dims; ++d) {
    of_a.push_back(a.shape().rank() - dims + d);
    of_b.push_back(d);
  }
  return tensordot(a, b, of_a, of_b);
}

}  // namespace lockstep::ops
