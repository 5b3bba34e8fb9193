// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/unet.h"

#include <gmock/gmock.h>

#include "model_zoo/build.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "tests/runtime/kernels/tensors.h"

namespace lockstep::model_zoo {
namespace {

using kernels::testing::random_tensor;
using kernels::testing::values_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct UnetFit {
  const char* name;
  ModelOptions options;
  ModelInput input;
  Shape output;  ///< of one sample
};

void PrintTo(const UnetFit& fit, std::ostream* out) { *out << fit.name; }

Shape volumes_of(std::int64_t rows, const Shape& sample) {
  std::vector<std::int64_t> extents{rows};
  extents.insert(extents.end(), sample.extents().begin(), sample.extents().end());
  return Shape(std::span<const std::int64_t>(extents));
}

class Unet : public testing::TestWithParam<UnetFit> {};

TEST_P(Unet, AnswersEachPixelOrVoxelAndReachesEveryParameter) {
  const auto& [name, options, input, output] = GetParam();
  for (const std::int64_t samples : {2, 0}) {
    const auto net = build(options, input, 1);
    const Tensor y = net->forward(random_tensor(volumes_of(samples, input.sample_shape), DType::kFloat32, 1));
    EXPECT_EQ(y.shape(), volumes_of(samples, output));
    ops::sum(ops::mul(y, y)).backward();
    for (const nn::Parameter& parameter : net->parameters()) {
      ASSERT_TRUE(parameter.tensor.grad().defined()) << parameter.name;
      if (samples > 0) continue;
      EXPECT_THAT(values_of(parameter.tensor.grad()), testing::Each(0)) << parameter.name;
    }
  }
}

TEST_P(Unet, EvaluatesEachSampleByItself) {
  const auto& [name, options, input, output] = GetParam();
  const auto net = build(options, input, 1);
  net->train(false);
  const autograd::NoGrad no_grad;
  const Tensor x = random_tensor(volumes_of(3, input.sample_shape), DType::kFloat32, 1);
  const Tensor together = net->forward(x), alone = net->forward(x.rows(1, 2));
  kernels::testing::expect_close(alone, together.rows(1, 2), {.relative = 1e-4, .absolute = 1e-4});
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, Unet,
    testing::Values(
        UnetFit{"mask",
                Unet3dOptions{.levels = 2, .channels = 2},
                {.sample_shape = {4, 8, 4, 1}, .target_shape = {4, 8, 4}},
                {4, 8, 4}},
        UnetFit{"masks",
                Unet3dOptions{.levels = 1,
                              .channels = 4,
                              .convolutions = 1,
                              .up = UnetUp::kTrilinear,
                              .norm = UnetNorm::kGroup,
                              .groups = 2},
                {.sample_shape = {2, 4, 6, 3}, .target_shape = {2, 4, 6, 2}},
                {2, 4, 6, 2}},
        UnetFit{"classes",
                Unet3dOptions{
                    .levels = 1, .channels = 3, .norm = UnetNorm::kInstance, .activation = kernels::Activation::kGelu},
                {.sample_shape = {4, 2, 2, 2}, .target_shape = {4, 2, 2}, .classes = 5},
                {4, 2, 2, 5}},
        UnetFit{"mask_of_pixels",
                Unet2dOptions{.levels = 2, .channels = 2},
                {.sample_shape = {8, 4, 3}, .target_shape = {8, 4}},
                {8, 4}},
        UnetFit{
            "classes_of_pixels",
            Unet2dOptions{.levels = 1, .channels = 4, .up = UnetUp::kBilinear, .norm = UnetNorm::kGroup, .groups = 2},
            {.sample_shape = {2, 6, 3}, .target_shape = {2, 6}, .classes = 5},
            {2, 6, 5}}),
    [](const auto& fit) { return fit.param.name; });

TEST(Unet3dModel, FitsVolumesOfOtherExtents) {
  const auto net =
      build(Unet3dOptions{.levels = 1, .channels = 2}, {.sample_shape = {4, 4, 4, 1}, .target_shape = {4, 4, 4}}, 1);
  net->train(false);
  EXPECT_EQ(net->forward(random_tensor({1, 6, 2, 8, 1}, DType::kFloat32, 1)).shape(), (Shape{1, 6, 2, 8}));
}

TEST(Unet3dModel, RefusesDataThatDoNotFit) {
  const auto refusal = [](const Unet3dOptions& options, const ModelInput& input) {
    return [options, input] { outline(options, input); };
  };
  const Unet3dOptions two{.levels = 2, .channels = 2};
  EXPECT_THAT(refusal(two, {.sample_shape = {4, 4, 6, 1}, .target_shape = {4, 4, 6}}),
              ThrowsMessage<FieldError>(
                  AllOf(HasSubstr("model.unet3d.levels"), HasSubstr("multiples of 4"), HasSubstr("[4, 4, 6, 1]"))));
  for (const ModelInput& input : {ModelInput{.sample_shape = {4, 4, 3}, .target_shape = {4, 4}},
                                  ModelInput{.sample_shape = {4, 4, 4, 1}, .target_shape = {}, .classes = 2},
                                  ModelInput{.sample_shape = {4, 4, 4, 1}, .target_shape = {4, 4, 8}},
                                  ModelInput{.sample_shape = {4, 4, 4, 1}, .target_shape = {4, 4, 4, 2}, .classes = 2},
                                  ModelInput{.sample_shape = {4, 4, 4, 1}, .target_shape = {64}}}) {
    EXPECT_THAT(refusal(two, input), ThrowsMessage<FieldError>(HasSubstr("with a target a voxel")));
  }
  EXPECT_THAT(
      [] {
        outline(Unet2dOptions{.levels = 2}, {.sample_shape = {8, 6, 3}, .target_shape = {8, 6}, .classes = 2});
      },
      ThrowsMessage<FieldError>(AllOf(HasSubstr("model.unet2d.levels"), HasSubstr("multiples of 4"))));
  EXPECT_THAT(
      [] {
        outline(Unet2dOptions(), {.sample_shape = {16, 16, 3}, .target_shape = {}, .classes = 2});
      },
      ThrowsMessage<FieldError>(HasSubstr("with a target a pixel")));
  EXPECT_THAT(
      refusal({.levels = 1, .up = UnetUp::kBilinear}, {.sample_shape = {4, 4, 4, 1}, .target_shape = {4, 4, 4}}),
      ThrowsMessage<FieldError>(HasSubstr("BILINEAR is for images; volumes have TRILINEAR")));
  const Unet3dOptions instance{.levels = 2, .channels = 2, .norm = UnetNorm::kInstance};
  EXPECT_THAT(refusal(instance, {.sample_shape = {4, 4, 4, 1}, .target_shape = {4, 4, 4}}),
              ThrowsMessage<FieldError>(HasSubstr("more than one voxel on the lowest level")));
  const Unet3dOptions groups{.levels = 1, .channels = 6, .norm = UnetNorm::kGroup, .groups = 4};
  EXPECT_THAT(refusal(groups, {.sample_shape = {4, 4, 4, 1}, .target_shape = {4, 4, 4}}),
              ThrowsMessage<FieldError>(HasSubstr("model.unet3d.groups: must be a divisor of channels")));
}

}  // namespace
}  // namespace lockstep::model_zoo
