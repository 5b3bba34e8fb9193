// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/attention_problem.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace lockstep::kernels::cuda {
namespace {

constexpr AttentionLibrary kHopper{90, 91900};

/// A call that cuDNN computes, to be changed.
struct Call {
  AttentionPass pass = AttentionPass::kForward;
  checks::AttentionExtents extents{
      .batch = 8, .heads = 12, .kv_heads = 12, .queries = 1024, .keys = 1024, .channels = 64, .value_channels = 64};
  DType dtype = DType::kBFloat16;
  AttentionScores scores{.scale = 0.125, .causal = true};
  AttentionLibrary library = kHopper;

  std::vector<AttentionProblem> parts() const { return parts(AttentionSteps::dense(extents)); }
  std::vector<AttentionProblem> parts(const AttentionSteps& steps) const {
    return cudnn_attention(pass, extents, steps, dtype, scores, library);
  }
};

template <class Change>
bool goes_to_cudnn(AttentionPass pass, Change change) {
  Call call{.pass = pass};
  change(call);
  return !call.parts().empty();
}

class AttentionChoice : public testing::TestWithParam<AttentionPass> {
 protected:
  template <class Change>
  static bool cudnn(Change change) {
    return goes_to_cudnn(GetParam(), change);
  }
};

TEST_P(AttentionChoice, CudnnComputesWhatItsEnginesSupport) {
  EXPECT_TRUE(cudnn([](Call&) {}));
  EXPECT_TRUE(cudnn([](Call& c) { c.dtype = DType::kFloat16; }));
  EXPECT_TRUE(cudnn([](Call& c) { c.library.compute_capability = 80; }));
  EXPECT_TRUE(cudnn([](Call& c) { c.extents.kv_heads = 3; }));
  EXPECT_TRUE(cudnn([](Call& c) { c.extents.queries = c.extents.keys = 64; }));
  EXPECT_TRUE(cudnn([](Call& c) { c.extents.queries = c.extents.keys = 197; }));
  EXPECT_TRUE(cudnn([](Call& c) {
    c.scores.causal = false;
    c.extents.keys = 100;
  }));
  for (const std::int64_t channels : {8, 32, 104, 128}) {
    EXPECT_TRUE(cudnn([&](Call& c) { c.extents.channels = c.extents.value_channels = channels; })) << channels;
  }
}

TEST_P(AttentionChoice, OurOwnKernelsComputeTheRest) {
  EXPECT_FALSE(cudnn([](Call& c) { c.dtype = DType::kFloat32; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.dtype = DType::kFloat64; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.library.compute_capability = 75; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.scores.mask = Tensor::zeros({1, 1, 1024, 1024}, DType::kBool); }));
  EXPECT_FALSE(cudnn([](Call& c) { c.scores.mask = Tensor::zeros({1, 1, 1, 1024}, DType::kBFloat16); }));
  EXPECT_FALSE(cudnn([](Call& c) { c.scores.dropout.p = 0.1; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.scores.scale = std::numeric_limits<double>::quiet_NaN(); }));
  EXPECT_FALSE(cudnn([](Call& c) { c.scores.scale = 1e300; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.scores.scale = 0; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.scores.scale = -0.125; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.extents.keys = 1088; })) << "causal with more keys than queries";
  EXPECT_FALSE(cudnn([](Call& c) { c.extents.keys = 960; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.extents.value_channels = 32; }));
  for (const std::int64_t channels : {0, 4, 60, 136, 256}) {
    EXPECT_FALSE(cudnn([&](Call& c) { c.extents.channels = c.extents.value_channels = channels; })) << channels;
  }
  EXPECT_FALSE(cudnn([](Call& c) { c.extents.queries = c.extents.keys = 63; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.extents.batch = 0; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.extents.heads = c.extents.kv_heads = 0; }));
  EXPECT_FALSE(cudnn([](Call& c) { c.extents.batch = 65536 / 12 + 1; })) << "more heads than a grid's second extent";
  EXPECT_FALSE(cudnn([](Call& c) {
    c.extents.batch = 512;
    c.extents.queries = c.extents.keys = 8192;
  })) << "more elements than an int counts";
}

INSTANTIATE_TEST_SUITE_P(Passes, AttentionChoice, testing::Values(AttentionPass::kForward, AttentionPass::kBackward),
                         [](const auto& pass) {
                           return pass.param == AttentionPass::kForward ? "Forward" : "Backward";
                         });

TEST(AttentionChoice, WhatAGraphCannotCaptureIsOurOwn) {
  const auto ragged = [](std::size_t version) {
    return [version](Call& c) {
      c.extents.queries = c.extents.keys = 197;
      c.library.cudnn_version = version;
    };
  };
  EXPECT_FALSE(goes_to_cudnn(AttentionPass::kBackward, ragged(91500)));
  EXPECT_TRUE(goes_to_cudnn(AttentionPass::kBackward, ragged(91600)));
  EXPECT_TRUE(goes_to_cudnn(AttentionPass::kForward, ragged(91500)));
  EXPECT_TRUE(goes_to_cudnn(AttentionPass::kBackward, [](Call& c) { c.library.cudnn_version = 91500; }));
}

TEST(AttentionChoice, TheBackwardPassComesInEqualPartsOfBoundedMemory) {
  Call call{.pass = AttentionPass::kBackward};
  EXPECT_EQ(call.parts().size(), 1u);
  // 24 MiB a sample: 10 of them fit.
  call.extents.batch = 32;
  EXPECT_EQ(call.parts(), (std::vector<AttentionProblem>(4, Call{.pass = AttentionPass::kBackward}.parts()[0])));
  call.pass = AttentionPass::kForward;
  EXPECT_EQ(call.parts().size(), 1u);
}

TEST(AttentionChoice, TheBackwardPassTakesHeadsWhereASampleIsTooLarge) {
  Call call{.pass = AttentionPass::kBackward};
  call.extents = {
      .batch = 2, .heads = 32, .kv_heads = 8, .queries = 4096, .keys = 4096, .channels = 128, .value_channels = 128};
  const std::vector<AttentionProblem> parts = call.parts();
  ASSERT_EQ(parts.size(), 8u);
  for (const AttentionProblem& part : parts) {
    EXPECT_EQ(part.batch, 1);
    EXPECT_EQ(part.kv_heads, 2);
    EXPECT_EQ(part.heads, 8);
  }
  // 512 MiB for a head of k alone, and 2 GiB.
  call.extents.queries = call.extents.keys = 8192;
  EXPECT_EQ(call.parts().size(), 16u);
  call.extents.queries = call.extents.keys = 16384;
  EXPECT_TRUE(call.parts().empty());
}

TEST(AttentionChoice, PartsCoverEveryHeadOnce) {
  for (const std::int64_t batch : {1, 7, 31}) {
    for (const std::int64_t kv_heads : {1, 5, 20}) {
      for (const std::int64_t length : {128, 1000, 3000}) {
        Call call{.pass = AttentionPass::kBackward};
        call.extents = {.batch = batch,
                        .heads = 2 * kv_heads,
                        .kv_heads = kv_heads,
                        .queries = length,
                        .keys = length,
                        .channels = 64,
                        .value_channels = 64};
        std::int64_t heads = 0, heads_of_k = 0;
        std::set<std::string> plans;
        for (const AttentionProblem& part : call.parts()) {
          heads += part.batch * part.heads;
          heads_of_k += part.batch * part.kv_heads;
          plans.insert(key_of(part));
        }
        EXPECT_EQ(heads, batch * call.extents.heads);
        EXPECT_EQ(heads_of_k, batch * kv_heads);
        EXPECT_LE(plans.size(), 2u);
      }
    }
  }
}

/// Steps of heads in sequences: q, k and v behind one another, out by itself.
AttentionSteps in_sequences(const checks::AttentionExtents& e, std::int64_t padding = 0) {
  const auto steps = [&](std::int64_t heads) {
    const std::int64_t width = heads * e.channels + padding;
    return HeadSteps{e.queries * width, e.channels, width};
  };
  const HeadSteps packed = steps(e.heads + 2 * e.kv_heads);
  return {packed, packed, packed, steps(e.heads)};
}

TEST(AttentionChoice, CudnnReadsHeadsWhereTheyLie) {
  for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
    const Call call{.pass = pass};
    const std::vector<AttentionProblem> parts = call.parts(in_sequences(call.extents));
    ASSERT_EQ(parts.size(), 1u);
    EXPECT_EQ(parts[0].steps, in_sequences(call.extents));
    EXPECT_NE(key_of(parts[0]), key_of(call.parts()[0]));
    EXPECT_TRUE(call.parts(in_sequences(call.extents, 4)).empty()) << "rows that begin at 8 bytes";
    Call large = call;
    large.extents.batch = 1000;
    EXPECT_FALSE(large.parts().empty());
    EXPECT_TRUE(large.parts(in_sequences(large.extents)).empty()) << "more elements of memory than an int counts";
  }
}

TEST(AttentionChoice, PartsOfOneSampleAreTheSameProblem) {
  Call call{.pass = AttentionPass::kBackward};
  call.extents = {
      .batch = 2, .heads = 32, .kv_heads = 8, .queries = 4096, .keys = 4096, .channels = 128, .value_channels = 128};
  const std::vector<AttentionProblem> parts = call.parts(in_sequences(call.extents));
  ASSERT_EQ(parts.size(), 8u);
  for (const AttentionProblem& part : parts) {
    EXPECT_EQ(part, parts[0]);
    EXPECT_EQ(part.steps.q, (HeadSteps{8 * 128, 128, 48 * 128}));
  }
}

AttentionProblem problem() { return Call().parts().at(0); }

TEST(AttentionProblem, ItsKeyIsOneReadableLine) {
  EXPECT_EQ(key_of(problem()), "attention forward n8 heads 12 of 12 t1024x1024 c64 bfloat16 causal scale 0x1p-3");
}

TEST(AttentionProblem, ProblemsThatDifferAnywhereHaveKeysOfTheirOwn) {
  std::set<std::string> keys{key_of(problem())};
  std::size_t count = 1;
  const auto differ = [&](auto change) {
    AttentionProblem other = problem();
    change(other);
    EXPECT_TRUE(other != problem());
    keys.insert(key_of(other));
    EXPECT_EQ(keys.size(), ++count) << key_of(other);
  };
  differ([](AttentionProblem& p) { p.pass = AttentionPass::kBackward; });
  differ([](AttentionProblem& p) { p.batch = 9; });
  differ([](AttentionProblem& p) { p.heads = 24; });
  differ([](AttentionProblem& p) { p.kv_heads = 6; });
  differ([](AttentionProblem& p) { p.queries = 512; });
  differ([](AttentionProblem& p) { p.keys = 512; });
  differ([](AttentionProblem& p) { p.channels = 32; });
  differ([](AttentionProblem& p) { p.dtype = DType::kFloat16; });
  differ([](AttentionProblem& p) { p.causal = false; });
  differ([](AttentionProblem& p) { p.scale = 0.1250001f; });
  for (HeadSteps AttentionSteps::*const of :
       {&AttentionSteps::q, &AttentionSteps::k, &AttentionSteps::v, &AttentionSteps::out}) {
    differ([=](AttentionProblem& p) { (p.steps.*of).sample += 64; });
    differ([=](AttentionProblem& p) { (p.steps.*of).head += 64; });
    differ([=](AttentionProblem& p) { (p.steps.*of).row += 64; });
  }
}

}  // namespace
}  // namespace lockstep::kernels::cuda
