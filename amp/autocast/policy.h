// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/error.h"

namespace lockstep::amp {

enum class CastPolicy : std::uint8_t {
  kLowerPrecision,  ///< run in the autocast dtype
  kFloat32,         ///< run in float32
  kPromote,         ///< run in the widest input's dtype
  kNone,            ///< run in whatever comes in
  kRefused,         ///< an error under autocast
};

// Every operation: X(constant, name in the graph and in messages, policy). The policies are PyTorch's CUDA lists;
// elementwise operations are on none of them.
#define LOCKSTEP_OPERATIONS(X)                                                          \
  X(kLinear, "linear", kLowerPrecision)                                                 \
  X(kMatmul, "matmul", kLowerPrecision)                                                 \
  X(kConv, "conv", kLowerPrecision)                                                     \
  X(kConvTranspose, "conv_transpose", kLowerPrecision)                                  \
  X(kBatchNorm, "batch_norm", kNone)                                                    \
  X(kRelu, "relu", kNone)                                                               \
  X(kGelu, "gelu", kNone)                                                               \
  X(kGeluTanh, "gelu_tanh", kNone)                                                      \
  X(kTanh, "tanh", kNone)                                                               \
  X(kSigmoid, "sigmoid", kNone)                                                         \
  X(kAdd, "add", kPromote)                                                              \
  X(kMul, "mul", kPromote)                                                              \
  X(kScale, "scale", kNone)                                                             \
  X(kMaxPool, "max_pool", kNone)                                                        \
  X(kAveragePool, "average_pool", kNone)                                                \
  X(kGlobalAveragePool, "global_average_pool", kNone)                                   \
  X(kDropout, "dropout", kNone)                                                         \
  X(kReshape, "reshape", kNone)                                                         \
  X(kSoftmax, "softmax", kFloat32)                                                      \
  X(kLogSoftmax, "log_softmax", kFloat32)                                               \
  X(kCrossEntropy, "cross_entropy", kFloat32)                                           \
  X(kMse, "mse", kFloat32)                                                              \
  X(kMean, "mean", kNone)                                                               \
  X(kSum, "sum", kFloat32)                                                              \
  /* Attention. */                                                                      \
  X(kScaledDotProductAttention, "scaled_dot_product_attention", kLowerPrecision)        \
  X(kPackedAttention, "packed_attention", kLowerPrecision)                              \
  /* Losses made of operations. */                                                      \
  X(kNll, "nll", kFloat32)                                                              \
  X(kCtc, "ctc", kFloat32)                                                              \
  X(kBinaryCrossEntropyWithLogits, "binary_cross_entropy_with_logits", kFloat32)        \
  X(kKlDiv, "kl_div", kFloat32)                                                         \
  X(kL1, "l1", kFloat32)                                                                \
  X(kSmoothL1, "smooth_l1", kFloat32)                                                   \
  X(kHuber, "huber", kFloat32)                                                          \
  X(kHingeEmbedding, "hinge_embedding", kFloat32)                                       \
  X(kSoftMargin, "soft_margin", kFloat32)                                               \
  X(kMarginRanking, "margin_ranking", kFloat32)                                         \
  X(kTripletMargin, "triplet_margin", kFloat32)                                         \
  X(kCosineEmbedding, "cosine_embedding", kFloat32)                                     \
  X(kPoissonNll, "poisson_nll", kFloat32)                                               \
  X(kMultiMargin, "multi_margin", kFloat32)                                             \
  X(kMultilabelMargin, "multilabel_margin", kFloat32)                                   \
  X(kDice, "dice", kFloat32)                                                            \
  X(kBinaryCrossEntropy, "binary_cross_entropy", kRefused)                              \
  /* pointwise */                                                                       \
  X(kNeg, "neg", kNone)                                                                 \
  X(kAbs, "abs", kNone)                                                                 \
  X(kSqrt, "sqrt", kNone)                                                               \
  X(kRsqrt, "rsqrt", kFloat32)                                                          \
  X(kReciprocal, "reciprocal", kFloat32)                                                \
  X(kExp, "exp", kFloat32)                                                              \
  X(kExpm1, "expm1", kFloat32)                                                          \
  X(kLog, "log", kFloat32)                                                              \
  X(kLog1p, "log1p", kFloat32)                                                          \
  X(kLog2, "log2", kFloat32)                                                            \
  X(kLog10, "log10", kFloat32)                                                          \
  X(kSin, "sin", kNone)                                                                 \
  X(kCos, "cos", kNone)                                                                 \
  X(kTan, "tan", kFloat32)                                                              \
  X(kSinh, "sinh", kFloat32)                                                            \
  X(kCosh, "cosh", kFloat32)                                                            \
  X(kAsin, "asin", kFloat32)                                                            \
  X(kAcos, "acos", kFloat32)                                                            \
  X(kAtan, "atan", kNone)                                                               \
  X(kErf, "erf", kNone)                                                                 \
  X(kErfinv, "erfinv", kFloat32)                                                        \
  X(kSilu, "silu", kNone)                                                               \
  X(kLeakyRelu, "leaky_relu", kNone)                                                    \
  X(kElu, "elu", kNone)                                                                 \
  X(kSoftplus, "softplus", kFloat32)                                                    \
  X(kClamp, "clamp", kNone)                                                             \
  X(kSign, "sign", kNone)                                                               \
  X(kFloor, "floor", kNone)                                                             \
  X(kCeil, "ceil", kNone)                                                               \
  X(kRound, "round", kNone)                                                             \
  X(kTrunc, "trunc", kNone)                                                             \
  X(kPrelu, "prelu", kLowerPrecision)                                                   \
  X(kSub, "sub", kPromote)                                                              \
  X(kDiv, "div", kPromote)                                                              \
  X(kPow, "pow", kFloat32)                                                              \
  X(kAtan2, "atan2", kPromote)                                                          \
  X(kMaximum, "maximum", kPromote)                                                      \
  X(kMinimum, "minimum", kPromote)                                                      \
  X(kCompare, "compare", kPromote)                                                      \
  X(kWhere, "where", kPromote)                                                          \
  X(kLerp, "lerp", kPromote)                                                            \
  X(kAddcmul, "addcmul", kPromote)                                                      \
  X(kAddcdiv, "addcdiv", kPromote)                                                      \
  X(kExpand, "expand", kNone)                                                           \
  X(kSumTo, "sum_to", kNone)                                                            \
  /* Normalisation, embedding, upsampling. */                                           \
  X(kLayerNorm, "layer_norm", kFloat32)                                                 \
  X(kRmsNorm, "rms_norm", kFloat32)                                                     \
  X(kGroupNorm, "group_norm", kFloat32)                                                 \
  X(kInstanceNorm, "instance_norm", kNone)                                              \
  X(kEmbedding, "embedding", kNone)                                                     \
  X(kUpsampleNearest, "upsample_nearest", kFloat32)                                     \
  X(kUpsampleLinear, "upsample_linear", kFloat32)                                       \
  X(kRnnCell, "rnn_cell", kLowerPrecision)                                              \
  X(kGruCell, "gru_cell", kLowerPrecision)                                              \
  X(kLstmCell, "lstm_cell", kLowerPrecision)                                            \
  /* Gradients that are operations of their own, so that they can be differentiated. */ \
  X(kConvWeightGradient, "conv_weight_gradient", kLowerPrecision)                       \
  X(kMaxPoolGradient, "max_pool_gradient", kNone)                                       \
  X(kAveragePoolGradient, "average_pool_gradient", kNone)                               \
  X(kGlobalAveragePoolGradient, "global_average_pool_gradient", kNone)                  \
  X(kCrossEntropyGradient, "cross_entropy_gradient", kNone)                             \
  X(kBatchNormStatistics, "batch_norm_statistics", kNone)                               \
  X(kSumOverRanks, "sum_over_ranks", kNone)                                             \
  /* Structure. */                                                                      \
  X(kPermute, "permute", kNone)                                                         \
  X(kFlip, "flip", kNone)                                                               \
  X(kCat, "cat", kPromote)                                                              \
  X(kSlice, "slice", kNone)                                                             \
  X(kIndexSelect, "index_select", kNone)                                                \
  X(kGather, "gather", kNone)                                                           \
  X(kScatterAdd, "scatter_add", kPromote)                                               \
  X(kIndexPut, "index_put", kPromote)                                                   \
  X(kSort, "sort", kNone)                                                               \
  X(kTopk, "topk", kNone)                                                               \
  X(kGridSample, "grid_sample", kPromote)                                               \
  X(kVar, "var", kNone)                                                                 \
  X(kMax, "max", kNone)                                                                 \
  X(kMin, "min", kNone)                                                                 \
  X(kAmax, "amax", kNone)                                                               \
  X(kAmin, "amin", kNone)                                                               \
  X(kArgmax, "argmax", kNone)                                                           \
  X(kArgmin, "argmin", kNone)                                                           \
  X(kStd, "std", kNone)                                                                 \
  X(kProd, "prod", kFloat32)                                                            \
  X(kCumsum, "cumsum", kFloat32)                                                        \
  X(kCumprod, "cumprod", kFloat32)                                                      \
  X(kRecurrence, "recurrence", kNone)                                                   \
  X(kLogsumexp, "logsumexp", kFloat32)                                                  \
  X(kVectorNorm, "vector_norm", kFloat32)                                               \
  X(kMatrixNorm, "matrix_norm", kFloat32)                                               \
  X(kCosineSimilarity, "cosine_similarity", kFloat32)                                   \
  X(kMm, "mm", kLowerPrecision)                                                         \
  X(kBmm, "bmm", kLowerPrecision)                                                       \
  X(kMv, "mv", kLowerPrecision)                                                         \
  X(kVecdot, "vecdot", kLowerPrecision)                                                 \
  X(kAddmm, "addmm", kLowerPrecision)                                                   \
  X(kAddmv, "addmv", kLowerPrecision)                                                   \
  X(kAddr, "addr", kLowerPrecision)                                                     \
  X(kAddbmm, "addbmm", kLowerPrecision)                                                 \
  X(kBaddbmm, "baddbmm", kLowerPrecision)                                               \
  X(kChainMatmul, "chain_matmul", kLowerPrecision)                                      \
  X(kEinsum, "einsum", kLowerPrecision)                                                 \
  X(kDot, "dot", kPromote)                                                              \
  X(kTensordot, "tensordot", kPromote)                                                  \
  X(kVdot, "vdot", kPromote)                                                            \
  X(kBilinear, "bilinear", kPromote)                                                    \
  X(kDist, "dist", kFloat32)                                                            \
  X(kCdist, "cdist", kFloat32)                                                          \
  X(kPdist, "pdist", kFloat32)                                                          \
  X(kRenorm, "renorm", kFloat32)                                                        \
  /* Transformers. */                                                                   \
  X(kRotary, "rotary", kNone)                                                           \
  X(kSplitHeads, "split_heads", kNone)                                                  \
  X(kJoinHeads, "join_heads", kNone)

#define LOCKSTEP_CONSTANT(constant, name, policy) constant,
enum class Op : std::uint8_t { LOCKSTEP_OPERATIONS(LOCKSTEP_CONSTANT) };
#undef LOCKSTEP_CONSTANT

/// An operation in the policy table.
struct OpRow {
  std::string_view name;
  CastPolicy policy;
};

inline OpRow row_of(Op op) {
#define LOCKSTEP_ROW(constant, name, policy) \
  case Op::constant:                         \
    return {name, CastPolicy::policy};
  switch (op) { LOCKSTEP_OPERATIONS(LOCKSTEP_ROW) }
#undef LOCKSTEP_ROW
  throw UsageError("an operation without a row in the policy table");
}
#undef LOCKSTEP_OPERATIONS

inline CastPolicy policy_of(Op op) { return row_of(op).policy; }
inline std::string_view name_of(Op op) { return row_of(op).name; }

}  // namespace lockstep::amp
