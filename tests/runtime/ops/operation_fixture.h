// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/kernels/backend_choice.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/test_on.h"
#include "tests/runtime/ops/gradient_check.h"

namespace lockstep::ops::testing {

using kernels::testing::Bounds;
using kernels::testing::epsilon_of;
using kernels::testing::ulp_of;

/// What an operation's result and gradients may differ by from exact ones: 4 ulp sqrt(terms) of float32, and of a
/// 16-bit dtype one rounding and 2 ulp beside that.
struct Accuracy {
  std::int64_t terms = 1;  ///< the longest sum behind one element, accumulated in float32
  double magnitude = 1;    ///< of its terms
  /// The magnitudes, added up, of what is rounded to a 16-bit dtype on the way to a gradient and then combined: half an
  /// epsilon of it is allowed beside. 0 but for the operations that docs/mixed-precision.md lists, and for chains of
  /// several operations; the test says why.
  double intermediate = 0;
  /// The same on the way to the result.
  double intermediate_of_result = 0;

  Accuracy of_result() const {
    return {.terms = terms, .magnitude = magnitude, .intermediate = intermediate_of_result};
  }
};

/// The largest difference of a result from the exact value, of an operation on inputs of dtype `of_inputs`.
inline double allowed_difference(DType dtype, DType of_inputs, double exact, const Accuracy& accuracy) {
  if (!std::isfinite(exact)) return 0;
  const double sums = kernels::testing::float32_bound(exact, accuracy.terms, accuracy.magnitude);
  const double intermediate = is_reduced(of_inputs) ? epsilon_of(of_inputs) / 2 * accuracy.intermediate : 0;
  return sums + intermediate + (is_reduced(dtype) ? 2.5 * ulp_of(dtype, exact) : 0);
}

/// Fails with the element that differs most, measured by what is allowed.
inline void expect_accurate(const Tensor& found, const Tensor& exact, DType of_inputs, const Accuracy& accuracy,
                            const std::source_location& where = std::source_location::current()) {
  const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "expect_accurate");
  ASSERT_EQ(found.shape(), exact.shape());
  const std::vector<double> values = kernels::testing::values_of(found), wanted = kernels::testing::values_of(exact);
  double worst = 1;
  std::size_t at = values.size();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double allowed = allowed_difference(found.dtype(), of_inputs, wanted[i], accuracy);
    if (kernels::testing::is_close(values[i], wanted[i], {.relative = 0, .absolute = allowed})) continue;
    const double excess = std::abs(values[i] - wanted[i]) / allowed;
    if (at != values.size() && !(excess > worst)) continue;
    worst = excess;
    at = i;
  }
  if (at == values.size()) return;
  ADD_FAILURE() << "element " << at << " of " << values.size() << ": expected " << wanted[at] << ", found "
                << values[at] << ", " << worst << " times what " << lockstep::name_of(found.dtype()) << " allows";
}

/// The one test of an operation, for each device and dtype. In float64 its first and second gradients are compared with
/// central differences; in the other dtypes its output and gradients on the device, those of the recorded backward too,
/// are compared with the float64 run on the CPU; on the CPU those of the reference as well. The function is given its
/// inputs where it is to compute; what it reads beside them it makes like() one of them.
///
///   TEST_P(OperationTest, Relu) {
///     check([](const auto& in) { return relu(in[0]); }, {random({4, 3}, 1)});
///   }
class OperationTest : public kernels::testing::TestOn {
 protected:
  /// The tensor on the device and in the dtype of its counterpart: what `function` does to its constants.
  static Tensor like(const Tensor& model, const Tensor& constant) {
    return kernels::testing::tensor_of(kernels::testing::values_of(constant), constant.shape(), model.dtype())
        .to(model.device());
  }
  /// As a leaf of the graph on the device under test.
  static Tensor leaf(const Tensor& tensor) {
    const Tensor there = tensor.to(device());
    there.set_requires_grad(true);
    return there;
  }

  static void check(lockstep::testing::FunctionRef function, const std::vector<Tensor>& inputs,
                    const Accuracy& accuracy = {},
                    const std::source_location& where = std::source_location::current()) {
    const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "check");
    if (dtype() == DType::kFloat64) {
      lockstep::testing::expect_gradients(function, inputs, {.relative = 1e-6, .absolute = 1e-7}, where);
      lockstep::testing::expect_second_gradients(function, inputs, {.relative = 1e-6, .absolute = 1e-6}, where);
    } else {
      expect_like_float64(function, inputs, accuracy, where);
    }
  }

 private:
  static std::vector<Tensor> output_and_gradients(lockstep::testing::FunctionRef function,
                                                  const std::vector<Tensor>& inputs, const Tensor& output_gradient) {
    for (const Tensor& input : inputs) input.set_requires_grad(true);
    const Tensor output = function(inputs);
    const Tensor seed =
        output_gradient.defined() ? like(output, output_gradient) : lockstep::testing::output_gradient(output);
    std::vector<Tensor> all = autograd::grad(output, inputs, seed);
    all.insert(all.begin(), {output.detach(), seed});
    return all;
  }

  static void expect_like_float64(lockstep::testing::FunctionRef function, const std::vector<Tensor>& inputs,
                                  const Accuracy& accuracy, const std::source_location& where) {
    std::vector<Tensor> there, exact;
    for (const Tensor& input : inputs) {
      there.push_back(input.to(device()));
      exact.push_back(kernels::testing::tensor_of(kernels::testing::values_of(input), input.shape(), DType::kFloat64));
    }
    const std::vector<Tensor> found = output_and_gradients(function, there, {});
    const std::vector<Tensor> expected = output_and_gradients(function, exact, found[1]);
    expect_accurate(found, expected, accuracy, where);
    expect_recorded(function, there, expected, found[1], accuracy, where);
    if (device() != kCpu) return;
    const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "reference");
    const kernels::ScopedBackend reference(kernels::reference_backend());
    expect_accurate(output_and_gradients(function, there, found[1]), expected, accuracy, where);
    expect_recorded(function, there, expected, found[1], accuracy, where);
  }

  /// Output, its gradient, and the inputs' gradients.
  static void expect_accurate(const std::vector<Tensor>& found, const std::vector<Tensor>& expected,
                              const Accuracy& accuracy, const std::source_location& where) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(i == 0 ? "output" : i == 1 ? "output gradient" : "gradient of input " + std::to_string(i - 2));
      ASSERT_TRUE(found[i].defined() && expected[i].defined());
      testing::expect_accurate(found[i], expected[i], dtype(), i == 0 ? accuracy.of_result() : accuracy, where);
    }
  }

  static void expect_recorded(lockstep::testing::FunctionRef function, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& expected, const Tensor& seed, const Accuracy& accuracy,
                              const std::source_location& where) {
    const std::vector<Tensor> recorded = autograd::grad(function(inputs), inputs, seed, {.create_graph = true});
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      SCOPED_TRACE("recorded gradient of input " + std::to_string(i));
      ASSERT_TRUE(recorded[i].defined());
      EXPECT_EQ(recorded[i].dtype(), inputs[i].dtype());
      testing::expect_accurate(recorded[i], expected[i + 2], dtype(), accuracy, where);
    }
  }
};

using kernels::testing::kAllTypes;
using kernels::testing::name_of_on;

}  // namespace lockstep::ops::testing
