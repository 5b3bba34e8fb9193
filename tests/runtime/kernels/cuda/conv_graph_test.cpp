// SPDX-License-Identifier: Apache-2.0
// cuDNN's plans for convolutions, for GPUs that are only described: built as on a machine that has one, and not run.
#include "runtime/kernels/cuda/conv_graph.h"

#include <cudnn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/kernels/cuda/described_gpus.h"

namespace lockstep::kernels::cuda {
namespace {

struct Convolved {
  std::string where;
  Shape x;
  Shape weight;
  ConvGeometry geometry;
  bool bias = false;
};

ConvGeometry geometry(int spatial_rank, std::int64_t stride, std::int64_t padding) {
  return {.spatial_rank = spatial_rank, .stride = {stride, stride, stride}, .padding = {padding, padding, padding}};
}

void add_image(std::vector<Convolved>& all, const char* where, std::int64_t images, std::int64_t extent,
               std::int64_t channels, std::int64_t outputs, std::int64_t kernel, std::int64_t stride,
               std::int64_t padding, bool bias = false) {
  all.push_back({where, Shape{images, extent, extent, channels}, Shape{outputs, kernel, kernel, channels},
                 geometry(2, stride, padding), bias});
}

void add_bottlenecks(std::vector<Convolved>& all) {
  const auto add = [&](std::int64_t extent, std::int64_t channels, std::int64_t outputs, std::int64_t kernel,
                       std::int64_t stride) {
    add_image(all, "ResNet-50", 256, extent, channels, outputs, kernel, stride, kernel / 2);
  };
  add(224, 3, 64, 7, 2);
  std::int64_t channels = 64;
  for (int stage = 0; stage < 4; ++stage) {
    const std::int64_t width = 64 << stage;
    const std::int64_t extent = 56 >> stage;
    const std::int64_t stride = stage == 0 ? 1 : 2;
    add(extent * stride, channels, width, 1, 1);
    add(extent * stride, width, width, 3, stride);
    add(extent * stride, channels, 4 * width, 1, stride);
    add(extent, width, 4 * width, 1, 1);
    add(extent, 4 * width, width, 1, 1);
    add(extent, width, width, 3, 1);
    channels = 4 * width;
  }
}

void add_basic_blocks(std::vector<Convolved>& all) {
  const auto add = [&](std::int64_t extent, std::int64_t channels, std::int64_t outputs, std::int64_t kernel,
                       std::int64_t stride) {
    add_image(all, "ResNet-18 for small images", 128, extent, channels, outputs, kernel, stride, kernel / 2);
  };
  add(32, 3, 64, 3, 1);
  add(32, 64, 64, 3, 1);
  for (int stage = 1; stage < 4; ++stage) {
    const std::int64_t width = 64 << stage;
    add(64 >> stage, width / 2, width, 3, 2);
    add(64 >> stage, width / 2, width, 1, 2);
    add(32 >> stage, width, width, 3, 1);
  }
}

/// Widths of 32 to 512 where the extent goes from 128 to 8.
void add_volumes(std::vector<Convolved>& all) {
  const auto add = [&](std::int64_t extent, std::int64_t channels, std::int64_t outputs, std::int64_t kernel,
                       std::int64_t stride, bool bias) {
    all.push_back({"3D U-Net", Shape{2, extent, extent, extent, channels},
                   Shape{outputs, kernel, kernel, kernel, channels}, geometry(3, stride, kernel == 3 ? 1 : 0), bias});
  };
  add(128, 1, 32, 3, 1, false);
  add(128, 4, 32, 3, 1, false);
  add(128, 32, 3, 1, 1, true);
  for (int level = 0; level < 4; ++level) {
    const std::int64_t width = 32 << level;
    const std::int64_t extent = 128 >> level;
    add(extent, width, width, 3, 1, false);
    add(extent, 2 * width, width, 3, 1, false);  // behind the skip connection
    add(extent / 2, width, 2 * width, 3, 1, false);
    add(extent, width, 2 * width, 2, 2, false);  // its data pass is the way up
  }
}

std::vector<Convolved> convolutions() {
  std::vector<Convolved> all;
  add_bottlenecks(all);
  add_basic_blocks(all);
  add_volumes(all);
  add_image(all, "ViT-B/16", 64, 224, 3, 768, 16, 16, 0, true);
  add_image(all, "convnet", 64, 28, 1, 32, 3, 1, 1, true);
  add_image(all, "convnet", 64, 14, 32, 64, 3, 1, 1, true);
  // What an own model may ask for.
  add_image(all, "odd channels", 8, 33, 5, 7, 3, 1, 1, true);
  all.push_back({"depthwise", Shape{8, 32, 32, 64}, Shape{64, 3, 3, 1}, geometry(2, 1, 1)});
  all.back().geometry.groups = 64;
  all.push_back({"groups", Shape{8, 32, 32, 128}, Shape{128, 3, 3, 4}, geometry(2, 2, 1)});
  all.back().geometry.groups = 32;
  all.push_back({"dilation", Shape{8, 64, 64, 16}, Shape{16, 3, 3, 16}, geometry(2, 1, 0)});
  all.back().geometry.dilation = {2, 2, 2};
  return all;
}

std::vector<ConvProblem> problems(const Convolved& c, DType dtype) {
  std::vector<ConvProblem> all;
  const Shape y = conv_output_shape(c.x, c.weight, c.geometry);
  for (const ConvPass pass : {ConvPass::kForward, ConvPass::kData, ConvPass::kWeights}) {
    const bool bias = pass == ConvPass::kForward && c.bias;
    all.emplace_back(pass, c.geometry, c.x, c.weight, y, dtype, dtype, bias);
  }
  return all;
}

class ConvGraphOfGpu : public testing::TestWithParam<DescribedGpu> {
 protected:
  void SetUp() override {
    if (cudnnGetVersion() < 90800) GTEST_SKIP() << "cuDNN before 9.8 needs a GPU to make plans";
  }
  const PlanTarget target_{.properties = GetParam().properties()};
};

TEST_P(ConvGraphOfGpu, EveryPassOfEveryModelHasADeterministicEngine) {
  for (const Convolved& convolved : convolutions()) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16, DType::kFloat32}) {
      if (dtype == DType::kBFloat16 && !GetParam().has_bfloat16()) continue;
      for (const ConvProblem& problem : problems(convolved, dtype)) {
        const auto plans = CudnnPlan::ranked(target_, graph_of(problem), 1);
        EXPECT_EQ(plans.size(), 1u) << convolved.where << ": " << key_of(problem);
      }
    }
  }
}

TEST_P(ConvGraphOfGpu, APlanIsFoundAgainByItsName) {
  const Convolved& convolved = convolutions().front();
  for (const ConvProblem& problem : problems(convolved, DType::kFloat16)) {
    const auto plans = CudnnPlan::ranked(target_, graph_of(problem), 8);
    ASSERT_FALSE(plans.empty()) << key_of(problem);
    for (const auto& plan : plans) {
      ASSERT_FALSE(plan->name().empty()) << key_of(problem);
      const auto again = CudnnPlan::named(target_, graph_of(problem), plan->name());
      ASSERT_NE(again, nullptr) << plan->name() << ", " << key_of(problem);
      EXPECT_EQ(again->name(), plan->name());
    }
    EXPECT_EQ(CudnnPlan::named(target_, graph_of(problem), "eng9999"), nullptr);
  }
}

INSTANTIATE_TEST_SUITE_P(Described, ConvGraphOfGpu, testing::Values(kT4, kA100, kH100),
                         [](const auto& gpu) { return "Sm" + std::to_string(gpu.param.compute_capability / 10); });

}  // namespace
}  // namespace lockstep::kernels::cuda
