// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/error.h"

namespace lockstep::amp {

/// Every operation. The compiler asks for a new one's row in row_of().
enum class Op : std::uint8_t {
  kLinear,
  kMatmul,
  kConv,
  kConvTranspose,
  kBatchNorm,
  kRelu,
  kGelu,
  kGeluTanh,
  kTanh,
  kSigmoid,
  kAdd,
  kMul,
  kScale,
  kMaxPool,
  kAveragePool,
  kGlobalAveragePool,
  kDropout,
  kReshape,
  kSoftmax,
  kLogSoftmax,
  kCrossEntropy,
  kMse,
  kMean,
  kSum,
  // Attention.
  kScaledDotProductAttention,
  // Losses made of operations.
  kNll,
  kBinaryCrossEntropyWithLogits,
  kKlDiv,
  kL1,
  kSmoothL1,
  kHuber,
  kHingeEmbedding,
  kSoftMargin,
  kMarginRanking,
  kTripletMargin,
  kCosineEmbedding,
  kPoissonNll,
  kMultiMargin,
  kMultilabelMargin,
  kDice,
  kBinaryCrossEntropy,
  // pointwise
  kNeg,
  kAbs,
  kSqrt,
  kRsqrt,
  kReciprocal,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kLog2,
  kLog10,
  kSin,
  kCos,
  kTan,
  kSinh,
  kCosh,
  kAsin,
  kAcos,
  kErf,
  kSilu,
  kLeakyRelu,
  kElu,
  kSoftplus,
  kClamp,
  kPrelu,
  kSub,
  kDiv,
  kPow,
  kMaximum,
  kMinimum,
  kCompare,
  kWhere,
  kLerp,
  kAddcmul,
  kAddcdiv,
  kExpand,
  kSumTo,
  // Normalisation, embedding, upsampling.
  kLayerNorm,
  kRmsNorm,
  kGroupNorm,
  kInstanceNorm,
  kEmbedding,
  kUpsampleNearest,
  kUpsampleLinear,
  kRnnCell,
  kGruCell,
  kLstmCell,
  // Gradients that are operations of their own, so that they can be differentiated.
  kConvWeightGradient,
  kMaxPoolGradient,
  kAveragePoolGradient,
  kGlobalAveragePoolGradient,
  kCrossEntropyGradient,
  kBatchNormStatistics,
  kSumOverRanks,
  // Structure.
  kPermute,
  kFlip,
  kCat,
  kSlice,
  kIndexSelect,
  kGather,
  kScatterAdd,
  kVar,
  kMax,
  kMin,
  kAmax,
  kAmin,
  kArgmax,
  kArgmin,
  kStd,
  kProd,
  kCumsum,
  kCumprod,
  kRecurrence,
  kLogsumexp,
  kVectorNorm,
  kMatrixNorm,
  kCosineSimilarity,
  kMm,
  kBmm,
  kMv,
  kVecdot,
  kAddmm,
  kAddmv,
  kAddr,
  kAddbmm,
  kBaddbmm,
  kChainMatmul,
  kEinsum,
  kDot,
  kTensordot,
  kVdot,
  kBilinear,
  kDist,
  // Transformers.
  kRotary,
  kSplitHeads,
  kJoinHeads,
};

enum class CastPolicy : std::uint8_t {
  kLowerPrecision,  ///< run in the autocast dtype
  kFloat32,         ///< run in float32
  kPromote,         ///< run in the widest input's dtype
  kNone,            ///< run in whatever comes in
  kRefused,         ///< an error under autocast
};

/// An operation in the policy table.
struct OpRow {
  std::string_view name;  ///< in the graph and in messages
  CastPolicy policy;      ///< PyTorch's CUDA lists; elementwise operations are on none of them
};

inline OpRow row_of(Op op) {
  switch (op) {  // no default: a new operation without a row does not compile
    case Op::kLinear:
      return {"linear", CastPolicy::kLowerPrecision};
    case Op::kMatmul:
      return {"matmul", CastPolicy::kLowerPrecision};
    case Op::kConv:
      return {"conv", CastPolicy::kLowerPrecision};
    case Op::kConvTranspose:
      return {"conv_transpose", CastPolicy::kLowerPrecision};
    case Op::kBatchNorm:
      return {"batch_norm", CastPolicy::kNone};
    case Op::kRelu:
      return {"relu", CastPolicy::kNone};
    case Op::kGelu:
      return {"gelu", CastPolicy::kNone};
    case Op::kGeluTanh:
      return {"gelu_tanh", CastPolicy::kNone};
    case Op::kTanh:
      return {"tanh", CastPolicy::kNone};
    case Op::kSigmoid:
      return {"sigmoid", CastPolicy::kNone};
    case Op::kAdd:
      return {"add", CastPolicy::kPromote};
    case Op::kMul:
      return {"mul", CastPolicy::kPromote};
    case Op::kScale:
      return {"scale", CastPolicy::kNone};
    case Op::kMaxPool:
      return {"max_pool", CastPolicy::kNone};
    case Op::kAveragePool:
      return {"average_pool", CastPolicy::kNone};
    case Op::kGlobalAveragePool:
      return {"global_average_pool", CastPolicy::kNone};
    case Op::kDropout:
      return {"dropout", CastPolicy::kNone};
    case Op::kReshape:
      return {"reshape", CastPolicy::kNone};
    case Op::kSoftmax:
      return {"softmax", CastPolicy::kFloat32};
    case Op::kLogSoftmax:
      return {"log_softmax", CastPolicy::kFloat32};
    case Op::kCrossEntropy:
      return {"cross_entropy", CastPolicy::kFloat32};
    case Op::kMse:
      return {"mse", CastPolicy::kFloat32};
    case Op::kMean:
      return {"mean", CastPolicy::kNone};
    // Attention.
    case Op::kScaledDotProductAttention:
      return {"scaled_dot_product_attention", CastPolicy::kLowerPrecision};
    // Losses made of operations.
    case Op::kNll:
      return {"nll", CastPolicy::kFloat32};
    case Op::kBinaryCrossEntropyWithLogits:
      return {"binary_cross_entropy_with_logits", CastPolicy::kFloat32};
    case Op::kKlDiv:
      return {"kl_div", CastPolicy::kFloat32};
    case Op::kL1:
      return {"l1", CastPolicy::kFloat32};
    case Op::kSmoothL1:
      return {"smooth_l1", CastPolicy::kFloat32};
    case Op::kHuber:
      return {"huber", CastPolicy::kFloat32};
    case Op::kHingeEmbedding:
      return {"hinge_embedding", CastPolicy::kFloat32};
    case Op::kSoftMargin:
      return {"soft_margin", CastPolicy::kFloat32};
    case Op::kMarginRanking:
      return {"margin_ranking", CastPolicy::kFloat32};
    case Op::kTripletMargin:
      return {"triplet_margin", CastPolicy::kFloat32};
    case Op::kCosineEmbedding:
      return {"cosine_embedding", CastPolicy::kFloat32};
    case Op::kPoissonNll:
      return {"poisson_nll", CastPolicy::kFloat32};
    case Op::kMultiMargin:
      return {"multi_margin", CastPolicy::kFloat32};
    case Op::kMultilabelMargin:
      return {"multilabel_margin", CastPolicy::kFloat32};
    case Op::kDice:
      return {"dice", CastPolicy::kFloat32};
    case Op::kBinaryCrossEntropy:
      return {"binary_cross_entropy", CastPolicy::kRefused};
    case Op::kSum:
      return {"sum", CastPolicy::kFloat32};
    // pointwise
    case Op::kNeg:
      return {"neg", CastPolicy::kNone};
    case Op::kAbs:
      return {"abs", CastPolicy::kNone};
    case Op::kSqrt:
      return {"sqrt", CastPolicy::kNone};
    case Op::kRsqrt:
      return {"rsqrt", CastPolicy::kFloat32};
    case Op::kReciprocal:
      return {"reciprocal", CastPolicy::kFloat32};
    case Op::kExp:
      return {"exp", CastPolicy::kFloat32};
    case Op::kExpm1:
      return {"expm1", CastPolicy::kFloat32};
    case Op::kLog:
      return {"log", CastPolicy::kFloat32};
    case Op::kLog1p:
      return {"log1p", CastPolicy::kFloat32};
    case Op::kLog2:
      return {"log2", CastPolicy::kFloat32};
    case Op::kLog10:
      return {"log10", CastPolicy::kFloat32};
    case Op::kSin:
      return {"sin", CastPolicy::kNone};
    case Op::kCos:
      return {"cos", CastPolicy::kNone};
    case Op::kTan:
      return {"tan", CastPolicy::kFloat32};
    case Op::kSinh:
      return {"sinh", CastPolicy::kFloat32};
    case Op::kCosh:
      return {"cosh", CastPolicy::kFloat32};
    case Op::kAsin:
      return {"asin", CastPolicy::kFloat32};
    case Op::kAcos:
      return {"acos", CastPolicy::kFloat32};
    case Op::kErf:
      return {"erf", CastPolicy::kNone};
    case Op::kSilu:
      return {"silu", CastPolicy::kNone};
    case Op::kLeakyRelu:
      return {"leaky_relu", CastPolicy::kNone};
    case Op::kElu:
      return {"elu", CastPolicy::kNone};
    case Op::kSoftplus:
      return {"softplus", CastPolicy::kFloat32};
    case Op::kClamp:
      return {"clamp", CastPolicy::kNone};
    case Op::kPrelu:
      return {"prelu", CastPolicy::kLowerPrecision};
    case Op::kSub:
      return {"sub", CastPolicy::kPromote};
    case Op::kDiv:
      return {"div", CastPolicy::kPromote};
    case Op::kPow:
      return {"pow", CastPolicy::kFloat32};
    case Op::kMaximum:
      return {"maximum", CastPolicy::kPromote};
    case Op::kMinimum:
      return {"minimum", CastPolicy::kPromote};
    case Op::kCompare:
      return {"compare", CastPolicy::kPromote};
    case Op::kWhere:
      return {"where", CastPolicy::kPromote};
    case Op::kLerp:
      return {"lerp", CastPolicy::kPromote};
    case Op::kAddcmul:
      return {"addcmul", CastPolicy::kPromote};
    case Op::kAddcdiv:
      return {"addcdiv", CastPolicy::kPromote};
    case Op::kExpand:
      return {"expand", CastPolicy::kNone};
    case Op::kSumTo:
      return {"sum_to", CastPolicy::kNone};
    // Normalisation, embedding, upsampling.
    case Op::kLayerNorm:
      return {"layer_norm", CastPolicy::kFloat32};
    case Op::kRmsNorm:
      return {"rms_norm", CastPolicy::kFloat32};
    case Op::kGroupNorm:
      return {"group_norm", CastPolicy::kFloat32};
    case Op::kInstanceNorm:
      return {"instance_norm", CastPolicy::kNone};
    case Op::kEmbedding:
      return {"embedding", CastPolicy::kNone};
    case Op::kUpsampleNearest:
      return {"upsample_nearest", CastPolicy::kFloat32};
    case Op::kUpsampleLinear:
      return {"upsample_linear", CastPolicy::kFloat32};
    case Op::kRnnCell:
      return {"rnn_cell", CastPolicy::kLowerPrecision};
    case Op::kGruCell:
      return {"gru_cell", CastPolicy::kLowerPrecision};
    case Op::kLstmCell:
      return {"lstm_cell", CastPolicy::kLowerPrecision};
    // Gradients that are operations of their own.
    case Op::kConvWeightGradient:
      return {"conv_weight_gradient", CastPolicy::kLowerPrecision};
    case Op::kMaxPoolGradient:
      return {"max_pool_gradient", CastPolicy::kNone};
    case Op::kAveragePoolGradient:
      return {"average_pool_gradient", CastPolicy::kNone};
    case Op::kGlobalAveragePoolGradient:
      return {"global_average_pool_gradient", CastPolicy::kNone};
    case Op::kCrossEntropyGradient:
      return {"cross_entropy_gradient", CastPolicy::kNone};
    case Op::kBatchNormStatistics:
      return {"batch_norm_statistics", CastPolicy::kNone};
    case Op::kSumOverRanks:
      return {"sum_over_ranks", CastPolicy::kNone};
    // Structure.
    case Op::kPermute:
      return {"permute", CastPolicy::kNone};
    case Op::kFlip:
      return {"flip", CastPolicy::kNone};
    case Op::kCat:
      return {"cat", CastPolicy::kPromote};
    case Op::kSlice:
      return {"slice", CastPolicy::kNone};
    case Op::kIndexSelect:
      return {"index_select", CastPolicy::kNone};
    case Op::kGather:
      return {"gather", CastPolicy::kNone};
    case Op::kScatterAdd:
      return {"scatter_add", CastPolicy::kPromote};
    case Op::kVar:
      return {"var", CastPolicy::kNone};
    case Op::kMax:
      return {"max", CastPolicy::kNone};
    case Op::kMin:
      return {"min", CastPolicy::kNone};
    case Op::kAmax:
      return {"amax", CastPolicy::kNone};
    case Op::kAmin:
      return {"amin", CastPolicy::kNone};
    case Op::kArgmax:
      return {"argmax", CastPolicy::kNone};
    case Op::kArgmin:
      return {"argmin", CastPolicy::kNone};
    case Op::kStd:
      return {"std", CastPolicy::kNone};
    case Op::kProd:
      return {"prod", CastPolicy::kFloat32};
    case Op::kCumsum:
      return {"cumsum", CastPolicy::kFloat32};
    case Op::kCumprod:
      return {"cumprod", CastPolicy::kFloat32};
    case Op::kRecurrence:
      return {"recurrence", CastPolicy::kNone};
    case Op::kLogsumexp:
      return {"logsumexp", CastPolicy::kFloat32};
    case Op::kVectorNorm:
      return {"vector_norm", CastPolicy::kFloat32};
    case Op::kMatrixNorm:
      return {"matrix_norm", CastPolicy::kFloat32};
    case Op::kCosineSimilarity:
      return {"cosine_similarity", CastPolicy::kFloat32};
    case Op::kMm:
      return {"mm", CastPolicy::kLowerPrecision};
    case Op::kBmm:
      return {"bmm", CastPolicy::kLowerPrecision};
    case Op::kMv:
      return {"mv", CastPolicy::kLowerPrecision};
    case Op::kVecdot:
      return {"vecdot", CastPolicy::kLowerPrecision};
    case Op::kAddmm:
      return {"addmm", CastPolicy::kLowerPrecision};
    case Op::kAddmv:
      return {"addmv", CastPolicy::kLowerPrecision};
    case Op::kAddr:
      return {"addr", CastPolicy::kLowerPrecision};
    case Op::kAddbmm:
      return {"addbmm", CastPolicy::kLowerPrecision};
    case Op::kBaddbmm:
      return {"baddbmm", CastPolicy::kLowerPrecision};
    case Op::kChainMatmul:
      return {"chain_matmul", CastPolicy::kLowerPrecision};
    case Op::kEinsum:
      return {"einsum", CastPolicy::kLowerPrecision};
    case Op::kDot:
      return {"dot", CastPolicy::kPromote};
    case Op::kTensordot:
      return {"tensordot", CastPolicy::kPromote};
    case Op::kVdot:
      return {"vdot", CastPolicy::kPromote};
    case Op::kBilinear:
      return {"bilinear", CastPolicy::kPromote};
    case Op::kDist:
      return {"dist", CastPolicy::kFloat32};
    // Transformers.
    case Op::kRotary:
      return {"rotary", CastPolicy::kNone};
    case Op::kSplitHeads:
      return {"split_heads", CastPolicy::kNone};
    case Op::kJoinHeads:
      return {"join_heads", CastPolicy::kNone};
  }
  throw UsageError("an operation without a row in the policy table");
}

inline CastPolicy policy_of(Op op) { return row_of(op).policy; }
inline std::string_view name_of(Op op) { return row_of(op).name; }

}  // namespace lockstep::amp
