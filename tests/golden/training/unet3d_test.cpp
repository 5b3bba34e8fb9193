// SPDX-License-Identifier: Apache-2.0
// A 3D U-Net answers and learns as a plain one of PyTorch's modules with the same weights.
#include "model_zoo/unet3d.h"

#include <gmock/gmock.h>

#include "runtime/nn/state_dict.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::model_zoo {
namespace {

using kernels::golden;
using kernels::json;
using kernels::tensor_in;

Unet3dOptions options_of(const json& stored) {
  Unet3dOptions options{.levels = stored["levels"],
                        .channels = stored["channels"],
                        .convolutions = stored["convolutions"],
                        .groups = stored["groups"]};
  if (stored["up"] == "TRILINEAR") options.up = Unet3dUp::kTrilinear;
  if (stored["norm"] == "INSTANCE") options.norm = Unet3dNorm::kInstance;
  if (stored["norm"] == "GROUP") options.norm = Unet3dNorm::kGroup;
  if (stored["activation"] == "GELU") options.activation = kernels::Activation::kGelu;
  return options;
}

Shape of_one(const Shape& batch) { return Shape(batch.extents().subspan(1)); }

/// A case in float32, or in float64 to the digits that are stored.
void expect_golden(const std::string& which, DType dtype) {
  const json& stored = golden("unet3d").at("unet3d").at(which);
  const bool classes = stored["classes"];
  const Tensor target = tensor_in(stored["target"], classes ? DType::kInt64 : dtype);
  const Tensor x = tensor_in(stored["x"], dtype);
  const auto net = make_model(options_of(stored), {.sample_shape = of_one(x.shape()),
                                                   .target_shape = of_one(target.shape()),
                                                   .classes = classes ? stored["outputs"].get<std::int64_t>() : 0});
  net->to(dtype);
  ASSERT_EQ(net->parameters().size(), stored["parameters"].size());
  for (const nn::Parameter& parameter : net->parameters()) {
    parameter.tensor.copy_from(tensor_in(stored["parameters"].at(parameter.name), dtype));
  }
  x.set_requires_grad(true);
  const Tensor y = net->forward(x);
  const Tensor loss = classes ? ops::cross_entropy(y, target)
                              : ops::binary_cross_entropy_with_logits(y, target) + ops::dice(ops::sigmoid(y), target);
  loss.backward();
  const bool exact = dtype == DType::kFloat64;
  const kernels::testing::Bounds bounds{.relative = exact ? 1e-9 : 1e-4, .absolute = exact ? 1e-10 : 1e-5};
  const auto expect = [&](const Tensor& found, const json& expected) {
    kernels::testing::expect_close(found, tensor_in(expected, DType::kFloat64), bounds);
  };
  expect(y, stored["y"]);
  EXPECT_NEAR(loss.item(), stored["loss"].get<double>(), bounds.absolute);
  expect(x.grad(), stored["dx"]);
  for (const nn::Parameter& parameter : net->parameters()) {
    SCOPED_TRACE(parameter.name);
    expect(parameter.tensor.grad(), stored["gradients"].at(parameter.name));
  }
  net->commit_statistics();
  ASSERT_EQ(net->statistics().size(), stored["statistics"].size());
  for (const auto& [name, statistics] : net->statistics()) {
    SCOPED_TRACE(name);
    expect(statistics->committed(), stored["statistics"].at(name));
  }
}

class GoldenUnet3d : public testing::TestWithParam<std::string> {};

TEST_P(GoldenUnet3d, AnswersAndLearnsAsPyTorchs) { expect_golden(GetParam(), DType::kFloat32); }

/// Running statistics are float32, so a batch norm does not train in float64.
TEST(GoldenUnet3d64, AnswersAndLearnsAsPyTorchsToEveryDigit) {
  for (const char* const name : {"instance_trilinear", "group_classes", "group_masks"}) {
    SCOPED_TRACE(name);
    expect_golden(name, DType::kFloat64);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenUnet3d,
                         testing::Values("batch_transposed", "instance_trilinear", "group_classes", "group_masks"),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace lockstep::model_zoo
