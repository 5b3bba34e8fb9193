// SPDX-License-Identifier: Apache-2.0
// cuDNN's engines for attention, for GPUs that are only described.
#include "runtime/kernels/cuda/attention_graph.h"

#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/runtime/kernels/cuda/described_gpus.h"

namespace {
/// The compute capability that the frontend's attention is to find, 900 for 9.0.
int described = 0;

cudaError_t describe(cudaDeviceProp* properties) {
  *properties = {};
  properties->major = described / 100;
  properties->minor = described / 10 % 10;
  return cudaSuccess;
}
}  // namespace

// The frontend asks the CUDA runtime for the current device and its compute capability, where all else reads the
// description. The program is linked with --wrap for what it asks; nothing else of the program does.
extern "C" {
cudaError_t __wrap_cudaGetDevice(int* device);
cudaError_t __wrap_cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t __wrap_cudaGetDeviceProperties_v2(cudaDeviceProp* properties, int device);

cudaError_t __wrap_cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t __wrap_cudaGetDeviceProperties(cudaDeviceProp* properties, int) { return describe(properties); }
cudaError_t __wrap_cudaGetDeviceProperties_v2(cudaDeviceProp* properties, int) { return describe(properties); }
}

namespace lockstep::kernels::cuda {
namespace {

struct Attended {
  std::string where;
  std::int64_t batch, heads, kv_heads, queries, channels;
  bool causal;
};

const std::vector<Attended>& models() {
  static const std::vector<Attended> all{
      {"GPT-2 124M", 32, 12, 12, 1024, 64, true},
      {"GPT-2 124M", 8, 12, 12, 1024, 64, true},
      {"GPT of Shakespeare", 64, 4, 4, 128, 32, true},
      {"Llama 3 8B", 2, 32, 8, 4096, 128, true},
      {"Llama 3.2 1B", 8, 32, 8, 2048, 64, true},
      {"one long text", 1, 32, 8, 8192, 128, true},
      {"BERT large", 64, 16, 16, 128, 64, false},
      {"BERT large", 16, 16, 16, 512, 64, false},
      {"ViT-B/16", 64, 12, 12, 197, 64, false},
      {"ViT-L/14", 32, 16, 16, 257, 64, false},
      {"ViT-H/14", 16, 16, 16, 257, 80, false},
      {"ViT-B/32 for small images", 64, 12, 12, 65, 64, false},
      // What the tests of attention run on a GPU.
      {"a ragged length", 2, 4, 2, 77, 64, true},
      {"a ragged length", 2, 4, 2, 130, 128, false},
      {"narrow heads", 2, 2, 2, 64, 8, true},
      {"odd heads", 2, 3, 1, 64, 104, false},
  };
  return all;
}

class AttentionGraphOfGpu : public testing::TestWithParam<DescribedGpu> {
 protected:
  void SetUp() override {
    if (cudnnGetVersion() < 91600) GTEST_SKIP() << "this cuDNN is older than 9.16";
    // cuDNN looks for the driver by this name when it plans attention. The toolkit's stand-in suffices.
    if (dlopen("libcuda.so.1", RTLD_NOW) == nullptr && dlopen(LOCKSTEP_CUDA_STUB, RTLD_NOW) == nullptr) {
      GTEST_SKIP() << "neither a driver's libcuda nor the toolkit's stub is there";
    }
    described = GetParam().compute_capability;
  }

  /// `packed`: heads lie in sequences, queries, keys and values behind one another.
  std::vector<AttentionProblem> problems(AttentionPass pass, const Attended& a, DType dtype,
                                         bool packed = false) const {
    const checks::AttentionExtents extents{.batch = a.batch,
                                           .heads = a.heads,
                                           .kv_heads = a.kv_heads,
                                           .queries = a.queries,
                                           .keys = a.queries,
                                           .channels = a.channels,
                                           .value_channels = a.channels};
    AttentionSteps steps = AttentionSteps::dense(extents);
    if (packed) {
      const auto in_sequences = [&](std::int64_t heads) {
        const std::int64_t width = heads * a.channels;
        return HeadSteps{a.queries * width, a.channels, width};
      };
      steps.q = steps.k = steps.v = in_sequences(a.heads + 2 * a.kv_heads);
      steps.out = in_sequences(a.heads);
    }
    return cudnn_attention(pass, extents, steps, dtype, {.scale = 0.125, .causal = a.causal},
                           {GetParam().compute_capability / 10, cudnnGetVersion()});
  }

  const PlanTarget target_{.properties = GetParam().properties()};
};

// Engines are listed, but not built: that needs a driver which loads their code.
TEST_P(AttentionGraphOfGpu, EveryPassOfEveryModelHasAnEngine) {
  for (const Attended& attended : models()) {
    for (const DType dtype : {DType::kFloat16, DType::kBFloat16}) {
      for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
        for (const bool packed : {false, true}) {
          const std::vector<AttentionProblem> parts = problems(pass, attended, dtype, packed);
          EXPECT_FALSE(parts.empty()) << attended.where;
          for (std::size_t i = 0; i < parts.size(); ++i) {
            if (i > 0 && parts[i] == parts[i - 1]) continue;
            EXPECT_FALSE(CudnnPlan::candidates(target_, graph_of(parts[i])).empty())
                << attended.where << ": " << key_of(parts[i]);
          }
        }
      }
    }
  }
}

// That a list is not empty says something.
TEST_P(AttentionGraphOfGpu, AnOlderGpuHasNoEngine) {
  const std::vector<AttentionProblem> parts = problems(AttentionPass::kForward, models().front(), DType::kFloat16);
  ASSERT_FALSE(parts.empty());
  described = kT4.compute_capability;
  EXPECT_TRUE(CudnnPlan::candidates({.properties = kT4.properties()}, graph_of(parts[0])).empty());
}

INSTANTIATE_TEST_SUITE_P(Described, AttentionGraphOfGpu, testing::Values(kA100, kH100),
                         [](const auto& gpu) { return "Sm" + std::to_string(gpu.param.compute_capability / 10); });

}  // namespace
}  // namespace lockstep::kernels::cuda
