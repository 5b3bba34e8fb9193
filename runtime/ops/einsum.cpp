// SPDX-License-Identifier: Apache-2.0
// Contractions of two operands: sums over what only one of them has, then one batched matrix product.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "runtime/ops/linear.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/products.h"
#include "runtime/ops/promoted.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/without_autocast.h"
#include "runtime/tensor/error.h"

namespace lockstep::ops {

namespace {

/// A name for each dimension.
using Labels = std::string;

bool has(const Labels& labels, char label) { return labels.find(label) != Labels::npos; }

/// A tensor with named dimensions.
struct Labelled {
  Tensor x;
  Labels labels;

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

using Extents = std::map<char, std::int64_t>;

std::int64_t product_of(const Extents& extents, const Labels& labels) {
  std::int64_t product = 1;
  for (const char label : labels) product *= extents.at(label);
  return product;
}

Tensor contract(Labelled a, Labelled b, const Labels& result) {
  const Labels labels_of_a = a.labels;
  a.sum_lone(b.labels, result);
  b.sum_lone(labels_of_a, result);
  Extents extents;
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
  return Labelled{reshape(product, Shape(shape)), order}.ordered(result);
}

struct Equation {
  Labels a, b, result;
};

[[noreturn]] void refuse(std::string_view equation, const std::string& why) {
  throw UsageError(fmt::format("einsum \"{}\": {}", equation, why));
}

Equation parsed(std::string_view equation) {
  std::string text;
  for (const char c : equation) {
    if (c != ' ') text += c;
  }
  if (text.find("...") != std::string::npos) refuse(equation, "an ellipsis is not built; name every dimension");
  const std::size_t arrow = text.find("->");
  const std::string operands = text.substr(0, arrow);
  const std::size_t comma = operands.find(',');
  if (comma == std::string::npos || operands.find(',', comma + 1) != std::string::npos) {
    refuse(equation, "expected two operands");
  }
  Equation result{operands.substr(0, comma), operands.substr(comma + 1), {}};
  for (const Labels& labels : {result.a, result.b}) {
    for (const char label : labels) {
      if (!((label >= 'a' && label <= 'z') || (label >= 'A' && label <= 'Z'))) {
        refuse(equation, fmt::format("'{}' is no label; labels are letters", label));
      }
      if (std::ranges::count(labels, label) > 1) {
        refuse(equation, fmt::format("label '{}' twice in one operand is not built", label));
      }
    }
  }
  if (arrow == std::string::npos) {
    for (const char label : result.a + result.b) {
      if (has(result.a, label) != has(result.b, label)) result.result += label;
    }
    std::ranges::sort(result.result);
    return result;
  }
  result.result = text.substr(arrow + 2);
  for (const char label : result.result) {
    if (!has(result.a, label) && !has(result.b, label)) {
      refuse(equation, fmt::format("no operand has the result's label '{}'", label));
    }
    if (std::ranges::count(result.result, label) > 1) {
      refuse(equation, fmt::format("the result names '{}' twice", label));
    }
  }
  return result;
}

}  // namespace

Tensor einsum(std::string_view equation, const Tensor& first, const Tensor& second) {
  const Tensor a = amp::autocast(amp::Op::kEinsum, first);
  const Tensor b = amp::autocast(amp::Op::kEinsum, second);
  const Equation labels = parsed(equation);
  Extents extents;
  for (const auto& [x, names] : {std::pair{&a, &labels.a}, std::pair{&b, &labels.b}}) {
    if (static_cast<int>(names->size()) != x->shape().rank()) {
      refuse(equation, fmt::format("\"{}\" does not name the dimensions of {}", *names, describe(*x)));
    }
    for (std::size_t d = 0; d < names->size(); ++d) {
      const std::int64_t extent = x->size(static_cast<int>(d));
      if (const auto [known, is_new] = extents.emplace((*names)[d], extent); !is_new && known->second != extent) {
        throw ShapeError(fmt::format("einsum \"{}\" of {} and {}: label '{}' has the extents {} and {}", equation,
                                     describe(a), describe(b), (*names)[d], known->second, extent));
      }
    }
  }
  const WithoutAutocast as_they_are;
  return contract({a, labels.a}, {b, labels.b}, labels.result);
}

Tensor tensordot(const Tensor& first, const Tensor& second, const Dims& dims_of_a, const Dims& dims_of_b) {
  const auto [a, b] = Operands(amp::Op::kTensordot, first, second);
  const auto& list_a = dims_of_a.list();
  const auto& list_b = dims_of_b.list();
  if (list_a.size() != list_b.size()) {
    throw ShapeError(
        fmt::format("tensordot: {} dimensions of the one and {} of the other", list_a.size(), list_b.size()));
  }
  if (!list_a.empty()) {
    dims_of("tensordot", dims_of_a, a.shape().rank());
    dims_of("tensordot", dims_of_b, b.shape().rank());
  }
  Labels of_a, of_b;
  for (int d = 0; d < a.shape().rank(); ++d) of_a += static_cast<char>('a' + d);
  for (int d = 0; d < b.shape().rank(); ++d) of_b += static_cast<char>('A' + d);
  for (std::size_t i = 0; i < list_a.size(); ++i) {
    const int in_a = dim_of("tensordot", list_a[i], a.shape().rank());
    const int in_b = dim_of("tensordot", list_b[i], b.shape().rank());
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
