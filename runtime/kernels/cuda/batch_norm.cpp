// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/batch_norm.h"

#include "runtime/kernels/cuda/families.h"

namespace lockstep::kernels::cuda {

// batch_norm_statistics.cu, batch_norm_apply.cu and batch_norm_backward.cu define them.
Function<decltype(BatchNormalization::batch_norm_statistics)> batch_norm_statistics;
Function<decltype(BatchNormalization::batch_norm_finalize)> batch_norm_finalize;
Function<decltype(BatchNormalization::batch_norm_measure)> batch_norm_measure;
Function<decltype(BatchNormalization::batch_norm_apply)> batch_norm_apply;
Function<decltype(BatchNormalization::batch_norm_backward_reduce)> batch_norm_backward_reduce;
Function<decltype(BatchNormalization::batch_norm_backward_apply)> batch_norm_backward_apply;

const BatchNormalization kBatchNormalization{.batch_norm_statistics = batch_norm_statistics,
                                             .batch_norm_finalize = batch_norm_finalize,
                                             .batch_norm_measure = batch_norm_measure,
                                             .batch_norm_apply = batch_norm_apply,
                                             .batch_norm_backward_reduce = batch_norm_backward_reduce,
                                             .batch_norm_backward_apply = batch_norm_backward_apply};

}  // namespace lockstep::kernels::cuda
