// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/families.h"

/// The CPU's fast kernels: oneDNN for matrix products and convolution, own fused loops for the rest. A table a family,
/// in the source file of the family's name. Dtypes that no loop takes (float64, integers) and products of nothing run
/// on the reference's function of the same name.
namespace lockstep::kernels::cpu {

extern const Elementwise kElementwise;
extern const Pointwise kPointwise;
extern const Reductions kReductions;
extern const MatrixProducts kMatrixProducts;
extern const Convolution kConvolution;
extern const Pooling kPooling;
extern const Softmax kSoftmax;
extern const Losses kLosses;
extern const Attention kAttention;
extern const BatchNormalization kBatchNormalization;
extern const Normalization kNormalization;
extern const Embedding kEmbedding;
extern const Upsampling kUpsampling;
extern const ArenaSteps kArenaSteps;
extern const Decisions kDecisions;
extern const Movement kMovement;
extern const DimReductions kDimReductions;
extern const Scans kScans;
extern const Indexing kIndexing;

}  // namespace lockstep::kernels::cpu
