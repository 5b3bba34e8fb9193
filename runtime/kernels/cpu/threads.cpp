// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/threads.h"

#include <omp.h>

namespace lockstep::kernels::cpu {

int threads() { return omp_get_max_threads(); }

}  // namespace lockstep::kernels::cpu
