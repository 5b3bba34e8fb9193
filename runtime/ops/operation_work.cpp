// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/operation_work.h"

#include <algorithm>
#include <array>

#include "runtime/autograd/node.h"

namespace lockstep::ops {

namespace {

using TensorList = std::vector<Tensor>;

double elements(const Tensor& tensor) { return static_cast<double>(tensor.numel()); }
/// The extent of a dimension counted from the end; 1 where there is none.
double extent(const Tensor& tensor, int from_end) {
  return tensor.shape().rank() < from_end ? 1 : static_cast<double>(tensor.size(-from_end));
}
double over(double a, double b) { return b > 0 ? a / b : 0; }

/// The multiply-adds of a product: each of the result's elements is a sum over the operands' common extent.
double of_linear(const Tensor& y, const TensorList& inputs) { return elements(y) * extent(inputs[0], 1); }

/// Either operand may be transposed; the second may be a vector.
double of_matmul(const Tensor& y, const TensorList& inputs) {
  const double rows = over(elements(y), inputs[1].shape().rank() < 2 ? 1 : extent(y, 1));
  return elements(y) * over(elements(inputs[0]), rows);
}

double of_conv(const Tensor& y, const TensorList& inputs) {
  return elements(y) * over(elements(inputs[1]), extent(y, 1));
}
double of_conv_transpose(const Tensor&, const TensorList& inputs) {
  return elements(inputs[0]) * over(elements(inputs[1]), extent(inputs[0], 1));
}
double of_weight_gradient(const Tensor& dweight, const TensorList& inputs) {
  return elements(inputs[1]) * over(elements(dweight), extent(inputs[1], 1));
}

/// Each query's score with each key, and the sum of the values that the scores weigh.
double of_attention(const Tensor&, const TensorList& inputs) {
  const Tensor &q = inputs[0], &k = inputs[1], &v = inputs[2];
  return over(elements(q), extent(q, 1)) * extent(k, 2) * (extent(q, 1) + extent(v, 1));
}

double of_packed_attention(const Tensor& y, const TensorList&) { return elements(y) * extent(y, 2) * 2; }

struct CountedProduct {
  std::string_view name;
  double (*multiply_adds)(const Tensor& result, const TensorList& inputs);
  std::size_t operands;    ///< the first inputs
  double of_gradient = 1;  ///< multiply-adds of an operand's gradient, by those of the forward pass
};

constexpr std::array kProducts{
    CountedProduct{"linear", of_linear, 2},
    CountedProduct{"matmul", of_matmul, 2},
    CountedProduct{"conv", of_conv, 2},
    CountedProduct{"conv_transpose", of_conv_transpose, 2},
    CountedProduct{"conv_weight_gradient", of_weight_gradient, 2},
    // Five products of the size of the forward pass's two, for three gradients.
    CountedProduct{"scaled_dot_product_attention", of_attention, 3, 2.5 / 3},
    CountedProduct{"packed_attention", of_packed_attention, 1, 2.5},
};

const CountedProduct* counted_product(std::string_view name, const TensorList& results, const TensorList& inputs) {
  const auto found = std::ranges::find(kProducts, name, &CountedProduct::name);
  if (found == kProducts.end() || results.empty() || inputs.size() < found->operands) return nullptr;
  const auto operands = inputs.begin() + static_cast<std::ptrdiff_t>(found->operands);
  return std::all_of(inputs.begin(), operands, [](const Tensor& input) { return input.defined(); }) ? &*found : nullptr;
}

double bytes_of(const TensorList& tensors) {
  double bytes = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) bytes += static_cast<double>(tensor.bytes());
  }
  return bytes;
}

}  // namespace

OperationWork forward_work(std::string_view name, const TensorList& results, const TensorList& inputs) {
  const CountedProduct* const product = counted_product(name, results, inputs);
  return {.operations = product == nullptr ? 0 : 2 * product->multiply_adds(results.front(), inputs),
          .bytes = bytes_of(results) + bytes_of(inputs)};
}

OperationWork backward_work(std::string_view name, const TensorList& results, const TensorList& inputs) {
  OperationWork work{.bytes = bytes_of(results) + bytes_of(inputs)};
  for (const Tensor& input : inputs) {
    if (autograd::is_recorded(input)) work.bytes += static_cast<double>(input.bytes());
  }
  const CountedProduct* const product = counted_product(name, results, inputs);
  if (product == nullptr) return work;
  const auto gradients = std::count_if(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(product->operands),
                                       [](const Tensor& input) { return autograd::is_recorded(input); });
  work.operations =
      2 * product->multiply_adds(results.front(), inputs) * product->of_gradient * static_cast<double>(gradients);
  return work;
}

}  // namespace lockstep::ops
