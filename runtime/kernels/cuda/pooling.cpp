// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/pooling.h"

#include "runtime/kernels/cuda/families.h"

namespace lockstep::kernels::cuda {

// window_pooling.cu and global_pooling.cu define them.
Function<decltype(Pooling::pool_forward)> pool_forward;
Function<decltype(Pooling::pool_backward)> pool_backward;
Function<decltype(Pooling::global_average_pool)> global_average_pool;
Function<decltype(Pooling::global_average_pool_backward)> global_average_pool_backward;

const Pooling kPooling{.pool_forward = pool_forward,
                       .pool_backward = pool_backward,
                       .global_average_pool = global_average_pool,
                       .global_average_pool_backward = global_average_pool_backward};

}  // namespace lockstep::kernels::cuda
