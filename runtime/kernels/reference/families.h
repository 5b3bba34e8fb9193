// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/families.h"

/// Plain loops, computed in double and rounded once: the oracle. A table a family, in the source file of the family's
/// name. It takes no decisions: their rules are functors, which every device runs.
namespace lockstep::kernels::reference {

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
extern const Movement kMovement;
extern const DimReductions kDimReductions;
extern const Scans kScans;
extern const Indexing kIndexing;

}  // namespace lockstep::kernels::reference
