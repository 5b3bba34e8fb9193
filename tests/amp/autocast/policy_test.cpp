// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/policy.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string_view>

#include "runtime/base/error.h"

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
    // Attention.
    {Op::kScaledDotProductAttention, CastPolicy::kLowerPrecision},
    {Op::kPackedAttention, CastPolicy::kLowerPrecision},
    // Losses made of operations.
    {Op::kNll, CastPolicy::kFloat32},
    {Op::kCtc, CastPolicy::kFloat32},
    {Op::kBinaryCrossEntropyWithLogits, CastPolicy::kFloat32},
    {Op::kKlDiv, CastPolicy::kFloat32},
    {Op::kL1, CastPolicy::kFloat32},
    {Op::kSmoothL1, CastPolicy::kFloat32},
    {Op::kHuber, CastPolicy::kFloat32},
    {Op::kHingeEmbedding, CastPolicy::kFloat32},
    {Op::kSoftMargin, CastPolicy::kFloat32},
    {Op::kMarginRanking, CastPolicy::kFloat32},
    {Op::kTripletMargin, CastPolicy::kFloat32},
    {Op::kCosineEmbedding, CastPolicy::kFloat32},
    {Op::kPoissonNll, CastPolicy::kFloat32},
    {Op::kMultiMargin, CastPolicy::kFloat32},
    {Op::kMultilabelMargin, CastPolicy::kFloat32},
    {Op::kDice, CastPolicy::kFloat32},
    {Op::kBinaryCrossEntropy, CastPolicy::kRefused},
    // pointwise
    {Op::kNeg, CastPolicy::kNone},
    {Op::kAbs, CastPolicy::kNone},
    {Op::kSqrt, CastPolicy::kNone},
    {Op::kRsqrt, CastPolicy::kFloat32},
    {Op::kReciprocal, CastPolicy::kFloat32},
    {Op::kExp, CastPolicy::kFloat32},
    {Op::kExpm1, CastPolicy::kFloat32},
    {Op::kLog, CastPolicy::kFloat32},
    {Op::kLog1p, CastPolicy::kFloat32},
    {Op::kLog2, CastPolicy::kFloat32},
    {Op::kLog10, CastPolicy::kFloat32},
    {Op::kSin, CastPolicy::kNone},
    {Op::kCos, CastPolicy::kNone},
    {Op::kTan, CastPolicy::kFloat32},
    {Op::kSinh, CastPolicy::kFloat32},
    {Op::kCosh, CastPolicy::kFloat32},
    {Op::kAsin, CastPolicy::kFloat32},
    {Op::kAtan, CastPolicy::kNone},
    {Op::kErfinv, CastPolicy::kFloat32},
    {Op::kSign, CastPolicy::kNone},
    {Op::kFloor, CastPolicy::kNone},
    {Op::kCeil, CastPolicy::kNone},
    {Op::kRound, CastPolicy::kNone},
    {Op::kTrunc, CastPolicy::kNone},
    {Op::kAtan2, CastPolicy::kPromote},
    {Op::kAcos, CastPolicy::kFloat32},
    {Op::kErf, CastPolicy::kNone},
    {Op::kSilu, CastPolicy::kNone},
    {Op::kLeakyRelu, CastPolicy::kNone},
    {Op::kElu, CastPolicy::kNone},
    {Op::kSoftplus, CastPolicy::kFloat32},
    {Op::kClamp, CastPolicy::kNone},
    {Op::kPrelu, CastPolicy::kLowerPrecision},
    {Op::kSub, CastPolicy::kPromote},
    {Op::kDiv, CastPolicy::kPromote},
    {Op::kPow, CastPolicy::kFloat32},
    {Op::kMaximum, CastPolicy::kPromote},
    {Op::kMinimum, CastPolicy::kPromote},
    {Op::kCompare, CastPolicy::kPromote},
    {Op::kWhere, CastPolicy::kPromote},
    {Op::kLerp, CastPolicy::kPromote},
    {Op::kAddcmul, CastPolicy::kPromote},
    {Op::kAddcdiv, CastPolicy::kPromote},
    {Op::kExpand, CastPolicy::kNone},
    {Op::kSumTo, CastPolicy::kNone},
    // Normalisation, embedding, upsampling.
    {Op::kLayerNorm, CastPolicy::kFloat32},
    {Op::kRmsNorm, CastPolicy::kFloat32},
    {Op::kGroupNorm, CastPolicy::kFloat32},
    {Op::kInstanceNorm, CastPolicy::kNone},
    {Op::kEmbedding, CastPolicy::kNone},
    {Op::kUpsampleNearest, CastPolicy::kFloat32},
    {Op::kUpsampleLinear, CastPolicy::kFloat32},
    {Op::kRnnCell, CastPolicy::kLowerPrecision},
    {Op::kGruCell, CastPolicy::kLowerPrecision},
    {Op::kLstmCell, CastPolicy::kLowerPrecision},
    // Gradients that are operations of their own run as the operations do.
    {Op::kConvWeightGradient, CastPolicy::kLowerPrecision},
    {Op::kMaxPoolGradient, CastPolicy::kNone},
    {Op::kAveragePoolGradient, CastPolicy::kNone},
    {Op::kGlobalAveragePoolGradient, CastPolicy::kNone},
    {Op::kCrossEntropyGradient, CastPolicy::kNone},
    {Op::kBatchNormStatistics, CastPolicy::kNone},
    {Op::kSumOverRanks, CastPolicy::kNone},
    // Structure.
    {Op::kPermute, CastPolicy::kNone},
    {Op::kFlip, CastPolicy::kNone},
    {Op::kCat, CastPolicy::kPromote},
    {Op::kSlice, CastPolicy::kNone},
    {Op::kIndexSelect, CastPolicy::kNone},
    {Op::kGather, CastPolicy::kNone},
    {Op::kScatterAdd, CastPolicy::kPromote},
    {Op::kIndexPut, CastPolicy::kPromote},
    {Op::kSort, CastPolicy::kNone},
    {Op::kTopk, CastPolicy::kNone},
    {Op::kGridSample, CastPolicy::kPromote},
    {Op::kVar, CastPolicy::kNone},
    {Op::kMax, CastPolicy::kNone},
    {Op::kMin, CastPolicy::kNone},
    {Op::kAmax, CastPolicy::kNone},
    {Op::kAmin, CastPolicy::kNone},
    {Op::kArgmax, CastPolicy::kNone},
    {Op::kArgmin, CastPolicy::kNone},
    {Op::kStd, CastPolicy::kNone},
    {Op::kProd, CastPolicy::kFloat32},
    {Op::kCumsum, CastPolicy::kFloat32},
    {Op::kCumprod, CastPolicy::kFloat32},
    {Op::kRecurrence, CastPolicy::kNone},
    {Op::kLogsumexp, CastPolicy::kFloat32},
    {Op::kVectorNorm, CastPolicy::kFloat32},
    {Op::kMatrixNorm, CastPolicy::kFloat32},
    {Op::kCosineSimilarity, CastPolicy::kFloat32},
    {Op::kMm, CastPolicy::kLowerPrecision},
    {Op::kBmm, CastPolicy::kLowerPrecision},
    {Op::kMv, CastPolicy::kLowerPrecision},
    {Op::kVecdot, CastPolicy::kLowerPrecision},
    {Op::kAddmm, CastPolicy::kLowerPrecision},
    {Op::kAddmv, CastPolicy::kLowerPrecision},
    {Op::kAddr, CastPolicy::kLowerPrecision},
    {Op::kAddbmm, CastPolicy::kLowerPrecision},
    {Op::kBaddbmm, CastPolicy::kLowerPrecision},
    {Op::kChainMatmul, CastPolicy::kLowerPrecision},
    {Op::kEinsum, CastPolicy::kLowerPrecision},
    {Op::kDot, CastPolicy::kPromote},
    {Op::kTensordot, CastPolicy::kPromote},
    {Op::kVdot, CastPolicy::kPromote},
    {Op::kBilinear, CastPolicy::kPromote},
    {Op::kDist, CastPolicy::kFloat32},
    {Op::kCdist, CastPolicy::kFloat32},
    {Op::kPdist, CastPolicy::kFloat32},
    {Op::kRenorm, CastPolicy::kFloat32},
    // Transformers.
    {Op::kRotary, CastPolicy::kNone},
    {Op::kSplitHeads, CastPolicy::kNone},
    {Op::kJoinHeads, CastPolicy::kNone},
};

/// How many operations there are: a number behind the last one has no row.
std::size_t operations() {
  for (std::uint8_t number = 0;; ++number) {
    try {
      row_of(static_cast<Op>(number));
    } catch (const UsageError&) {
      return number;
    }
  }
}

TEST(Policy, OfEveryOperationIsPyTorchs) {
  EXPECT_EQ(kExpected.size(), operations()) << "an operation is missing in this table";
  for (const auto& [op, policy] : kExpected) EXPECT_EQ(policy_of(op), policy) << name_of(op);
}

TEST(Policy, EveryOperationHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const auto& [op, policy] : kExpected) names.insert(name_of(op));
  EXPECT_EQ(names.size(), kExpected.size());
}

}  // namespace
}  // namespace lockstep::amp
