// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything that the loops include, so that it is read before an instruction set is switched on: an inline function
// that was compiled for AVX-512 must never be the copy that the linker keeps for the whole program.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>

#include "runtime/kernels/cpu/compiler.h"
#include "runtime/kernels/cpu/loops/loops.h"
#include "runtime/kernels/functors/batch_norm.h"
#include "runtime/kernels/functors/binary.h"
#include "runtime/kernels/functors/dropout.h"
#include "runtime/kernels/functors/extreme.h"
#include "runtime/kernels/functors/fast_exp.h"
#include "runtime/kernels/functors/layer_optimizer.h"
#include "runtime/kernels/functors/optimizer.h"
#include "runtime/kernels/functors/pair_loss.h"
#include "runtime/kernels/functors/random.h"
#include "runtime/kernels/functors/unary.h"
#include "runtime/kernels/geometry/visit_element.h"

// A family leaves some functions of the instruction set, which are defined behind this, unused.
#pragma GCC diagnostic ignored "-Wunused-function"
