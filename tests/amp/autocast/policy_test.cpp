// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/policy.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string_view>

namespace lockstep::amp {
namespace {

/// PyTorch's lists for CUDA; operations on none of them run in whatever comes in, with type promotion.
const std::map<Op, CastPolicy> kExpected = {
    {Op::kLinear, CastPolicy::kLowerPrecision},
    {Op::kMatmul, CastPolicy::kLowerPrecision},
    {Op::kConv, CastPolicy::kLowerPrecision},
    {Op::kConvTranspose, CastPolicy::kLowerPrecision},
    {Op::kSoftmax, CastPolicy::kFloat32},
    {Op::kLogSoftmax, CastPolicy::kFloat32},
    {Op::kCrossEntropy, CastPolicy::kFloat32},
    {Op::kMse, CastPolicy::kFloat32},
    {Op::kSum, CastPolicy::kFloat32},
    {Op::kAdd, CastPolicy::kPromote},
    {Op::kMul, CastPolicy::kPromote},
    {Op::kBatchNorm, CastPolicy::kNone},
    {Op::kRelu, CastPolicy::kNone},
    {Op::kGelu, CastPolicy::kNone},
    {Op::kGeluTanh, CastPolicy::kNone},
    {Op::kTanh, CastPolicy::kNone},
    {Op::kSigmoid, CastPolicy::kNone},
    {Op::kScale, CastPolicy::kNone},
    {Op::kMaxPool, CastPolicy::kNone},
    {Op::kAveragePool, CastPolicy::kNone},
    {Op::kGlobalAveragePool, CastPolicy::kNone},
    {Op::kDropout, CastPolicy::kNone},
    {Op::kReshape, CastPolicy::kNone},
    {Op::kMean, CastPolicy::kNone},
    // Normalisation, embedding, upsampling.
    {Op::kLayerNorm, CastPolicy::kFloat32},
    {Op::kRmsNorm, CastPolicy::kFloat32},
    {Op::kGroupNorm, CastPolicy::kFloat32},
    {Op::kInstanceNorm, CastPolicy::kNone},
    {Op::kEmbedding, CastPolicy::kNone},
    {Op::kUpsampleNearest, CastPolicy::kFloat32},
    {Op::kUpsampleLinear, CastPolicy::kFloat32},
};

TEST(Policy, OfEveryOperationIsPyTorchs) {
  ASSERT_EQ(kExpected.size(), static_cast<std::size_t>(Op::kUpsampleLinear) + 1) << "an operation is missing in this table";
  for (const auto& [op, policy] : kExpected) EXPECT_EQ(policy_of(op), policy) << name_of(op);
}

TEST(Policy, EveryOperationHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const auto& [op, policy] : kExpected) names.insert(name_of(op));
  EXPECT_EQ(names.size(), kExpected.size());
}

}  // namespace
}  // namespace lockstep::amp
