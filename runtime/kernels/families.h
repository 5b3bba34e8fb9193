// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep::kernels {

// The families of functions by name alone, so that a backend can list its tables without their headers: a source
// includes those of the families that it defines or calls.
struct Elementwise;
struct Pointwise;
struct Reductions;
struct MatrixProducts;
struct Convolution;
struct Pooling;
struct Softmax;
struct Losses;
struct Attention;
struct BatchNormalization;
struct Normalization;
struct Embedding;
struct Upsampling;
struct ArenaSteps;
struct Decisions;
struct Movement;
struct DimReductions;
struct Scans;
struct Indexing;

}  // namespace lockstep::kernels
