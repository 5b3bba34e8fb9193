// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "runtime/kernels/families.h"

/// A GPU's kernels: cuBLASLt for matrix products, cuDNN for convolution and attention, own kernels for the rest. A
/// table a family, in the source file of the family's name. A function works on the device of its tensors. Floating
/// dtypes are float32, float16 and bfloat16; float64, which is the oracle's, is refused, but for the sums and scans
/// that integers are counted with. A class target out of range makes the loss NaN, because an error would make the host
/// wait for the device.
namespace lockstep::kernels::cuda {

/// The type of the function that a member of a table points to: declares the functions of a family that is spread over
/// several source files.
template <class Pointer>
using Function = std::remove_pointer_t<Pointer>;

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

}  // namespace lockstep::kernels::cuda
