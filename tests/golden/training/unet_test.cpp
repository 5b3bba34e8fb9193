// SPDX-License-Identifier: Apache-2.0
// A U-Net of images or volumes answers and learns as a plain one of PyTorch's modules with the same weights.
#include "model_zoo/unet.h"

#include <gmock/gmock.h>

#include "runtime/nn/state_dict.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::model_zoo {
namespace {

using kernels::golden;
using kernels::json;
using kernels::tensor_in;

template <int kRank>
UnetOptions<kRank> options_of(const json& stored) {
  UnetOptions<kRank> options{.levels = stored["levels"],
                             .channels = stored["channels"],
                             .convolutions = stored["convolutions"],
                             .groups = stored["groups"]};
  if (stored["up"] == "TRILINEAR") options.up = UnetUp::kTrilinear;
  if (stored["up"] == "BILINEAR") options.up = UnetUp::kBilinear;
  if (stored["norm"] == "INSTANCE") options.norm = UnetNorm::kInstance;
  if (stored["norm"] == "GROUP") options.norm = UnetNorm::kGroup;
  if (stored["activation"] == "GELU") options.activation = kernels::Activation::kGelu;
  return options;
}

Shape of_one(const Shape& batch) { return Shape(batch.extents().subspan(1)); }

std::unique_ptr<nn::Module> model_of(const json& stored, const ModelInput& input) {
  if (stored.contains("rank")) return make_model(options_of<2>(stored), input);
  return make_model(options_of<3>(stored), input);
}

/// A case in float32, or in float64 to the digits that are stored.
void expect_golden(const std::string& model, const std::string& which, DType dtype) {
  const json& stored = golden(model).at(model).at(which);
  const bool classes = stored["classes"];
  const Tensor target = tensor_in(stored["target"], classes ? DType::kInt64 : dtype);
  const Tensor x = tensor_in(stored["x"], dtype);
  const auto net = model_of(stored, {.sample_shape = of_one(x.shape()),
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

struct GoldenCase {
  const char* model;
  const char* name;
};

class GoldenUnet : public testing::TestWithParam<GoldenCase> {};

TEST_P(GoldenUnet, AnswersAndLearnsAsPyTorchs) { expect_golden(GetParam().model, GetParam().name, DType::kFloat32); }

/// Running statistics are float32, so a batch norm does not train in float64.
TEST(GoldenUnet64, AnswersAndLearnsAsPyTorchsToEveryDigit) {
  for (const auto& [model, name] : {GoldenCase{"unet3d", "instance_trilinear"}, GoldenCase{"unet3d", "group_classes"},
                                    GoldenCase{"unet3d", "group_masks"}, GoldenCase{"unet2d", "instance_bilinear"},
                                    GoldenCase{"unet2d", "group_classes"}}) {
    SCOPED_TRACE(std::string(model) + " " + name);
    expect_golden(model, name, DType::kFloat64);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cases, GoldenUnet,
    testing::Values(GoldenCase{"unet3d", "batch_transposed"}, GoldenCase{"unet3d", "instance_trilinear"},
                    GoldenCase{"unet3d", "group_classes"}, GoldenCase{"unet3d", "group_masks"},
                    GoldenCase{"unet2d", "batch_transposed"}, GoldenCase{"unet2d", "batch_classes"},
                    GoldenCase{"unet2d", "instance_bilinear"}, GoldenCase{"unet2d", "group_classes"}),
    [](const auto& each) { return std::string(each.param.model) + "_" + each.param.name; });

}  // namespace
}  // namespace lockstep::model_zoo
