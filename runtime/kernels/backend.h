// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "runtime/kernels/arena.h"
#include "runtime/kernels/attention.h"
#include "runtime/kernels/backend_choice.h"
#include "runtime/kernels/batch_norm.h"
#include "runtime/kernels/convolution.h"
#include "runtime/kernels/decisions.h"
#include "runtime/kernels/dim_reductions.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/embedding.h"
#include "runtime/kernels/indexing.h"
#include "runtime/kernels/losses.h"
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/movement.h"
#include "runtime/kernels/normalization.h"
#include "runtime/kernels/pointwise.h"
#include "runtime/kernels/pooling.h"
#include "runtime/kernels/reductions.h"
#include "runtime/kernels/scans.h"
#include "runtime/kernels/softmax.h"
#include "runtime/kernels/upsampling.h"

namespace lockstep::kernels {

/// The kernels of a device: the functions of all families, which their headers document. All tensors lie on the
/// backend's device; outputs are allocated by the caller, do not alias inputs unless a function says that they may, and
/// are overwritten entirely. Floating dtypes are float32, float16, bfloat16 (and float64 where the reference runs);
/// 16-bit types are read exactly, accumulated in float32 and rounded once when they are stored. Extents may be 0
/// everywhere. Wrong shapes and dtypes throw ShapeError.
///
/// "Channels" are the last dimension, "rows" the product of the others.
struct Backend : Elementwise,
                 Pointwise,
                 Reductions,
                 MatrixProducts,
                 Convolution,
                 Pooling,
                 Softmax,
                 Losses,
                 Attention,
                 BatchNormalization,
                 Normalization,
                 Embedding,
                 Upsampling,
                 ArenaSteps,
                 Decisions,
                 Movement,
                 DimReductions,
                 Scans,
                 Indexing {
  std::string_view name;
};

}  // namespace lockstep::kernels
