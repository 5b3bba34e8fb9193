// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/ops/ops.h"
#include "tests/runtime/ops/gradient_check.h"

namespace lockstep::ops::testing {

using kernels::testing::Bounds;
using kernels::testing::epsilon_of;

/// What an operation's result and gradients may differ by from exact ones.
struct Accuracy {
  std::int64_t terms = 1;  ///< the longest sum behind one element, accumulated in float32
  double magnitude = 1;    ///< of its terms
  /// The magnitude of what is rounded to the dtype on the way to a gradient and then combined; 0 where each element is
  /// rounded once, when it is stored.
  double intermediate = 0;
};

inline Bounds bounds_of(DType dtype, const Accuracy& accuracy) {
  Bounds bounds = kernels::testing::bounds_for(dtype, accuracy.terms, accuracy.magnitude);
  bounds.absolute += epsilon_of(dtype) * accuracy.intermediate;
  return bounds;
}

/// The one test of an operation, for each device and dtype. In float64 its first and second gradients are compared with
/// central differences; in the other dtypes its output and gradients on the device, those of the recorded backward too,
/// are compared with the float64 run on the CPU. The function is given its inputs where it is to compute; what it reads
/// beside them it makes like() one of them.
///
///   TYPED_TEST(OperationTest, Relu) {
///     this->check([](const auto& in) { return relu(in[0]); }, {this->random({4, 3}, 1)});
///   }
template <class T>
class OperationTest : public ::testing::Test {
 protected:
  static constexpr Device kDevice = T::device;
  static constexpr DType kDType = T::dtype;
  /// The dtype of statistics and losses beside kDType.
  static constexpr DType kWide = kDType == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;

  void SetUp() override {
    if (const auto reason = lockstep::devices::why_skipped(kDevice)) GTEST_SKIP() << *reason;
  }

  static Tensor random(const Shape& shape, std::uint32_t seed, double low = -1, double high = 1) {
    return kernels::testing::random_tensor(shape, kDType, seed, low, high);
  }
  static Tensor random_wide(const Shape& shape, std::uint32_t seed, double low = -1, double high = 1) {
    return kernels::testing::random_tensor(shape, kWide, seed, low, high);
  }
  /// The tensor on the device and in the dtype of its counterpart: what `function` does to its constants.
  static Tensor like(const Tensor& model, const Tensor& constant) {
    return kernels::testing::tensor_of(kernels::testing::values_of(constant), constant.shape(), model.dtype())
        .to(model.device());
  }
  /// As a leaf of the graph on the device under test.
  static Tensor leaf(const Tensor& tensor) {
    const Tensor there = tensor.to(kDevice);
    there.set_requires_grad(true);
    return there;
  }

  static void check(const lockstep::testing::Function& function, const std::vector<Tensor>& inputs,
                    const Accuracy& accuracy = {},
                    const std::source_location& where = std::source_location::current()) {
    const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "check");
    if (kDType == DType::kFloat64) {
      lockstep::testing::expect_gradients(function, inputs, {.relative = 1e-6, .absolute = 1e-7}, where);
      lockstep::testing::expect_second_gradients(function, inputs, {.relative = 1e-6, .absolute = 1e-6}, where);
    } else {
      expect_like_float64(function, inputs, bounds_of(kDType, accuracy), where);
    }
  }

 private:
  static std::vector<Tensor> output_and_gradients(const lockstep::testing::Function& function,
                                                  const std::vector<Tensor>& inputs, const Tensor& output_gradient) {
    for (const Tensor& input : inputs) input.set_requires_grad(true);
    const Tensor output = function(inputs);
    const Tensor seed =
        output_gradient.defined() ? like(output, output_gradient) : lockstep::testing::output_gradient(output);
    std::vector<Tensor> all = autograd::grad(output, inputs, seed);
    all.insert(all.begin(), {output.detach(), seed});
    return all;
  }

  static void expect_like_float64(const lockstep::testing::Function& function, const std::vector<Tensor>& inputs,
                                  const Bounds& bounds, const std::source_location& where) {
    std::vector<Tensor> there, exact;
    for (const Tensor& input : inputs) {
      there.push_back(input.to(kDevice));
      exact.push_back(kernels::testing::tensor_of(kernels::testing::values_of(input), input.shape(), DType::kFloat64));
    }
    const std::vector<Tensor> found = output_and_gradients(function, there, {});
    const std::vector<Tensor> expected = output_and_gradients(function, exact, found[1]);
    const std::vector<Tensor> recorded = autograd::grad(function(there), there, found[1], {.create_graph = true});
    for (std::size_t i = 0; i < recorded.size(); ++i) {
      SCOPED_TRACE("recorded gradient of input " + std::to_string(i));
      ASSERT_TRUE(recorded[i].defined());
      EXPECT_EQ(recorded[i].dtype(), inputs[i].dtype());
      kernels::testing::expect_close(recorded[i], expected[i + 2], bounds, where);
    }
    for (std::size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(i == 0 ? "output" : i == 1 ? "output gradient" : "gradient of input " + std::to_string(i - 2));
      ASSERT_TRUE(found[i].defined() && expected[i].defined());
      EXPECT_TRUE(i < 2 || found[i].dtype() == inputs[i - 2].dtype());
      kernels::testing::expect_close(found[i], expected[i], bounds, where);
    }
  }
};

using kernels::testing::AllTypes;
using kernels::testing::OnName;

}  // namespace lockstep::ops::testing
