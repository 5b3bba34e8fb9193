// SPDX-License-Identifier: Apache-2.0
// A few numbers each: nothing to make faster.
#include "runtime/kernels/cpu/cpu_backend.h"

namespace lockstep::kernels {

void CpuBackend::cast_ballot(const Tensor& reduced, const Tensor& local, int rank, int world_size,
                             const Tensor& ballot) {
  reference_backend().cast_ballot(reduced, local, rank, world_size, ballot);
}

void CpuBackend::count_ballot(const Tensor& ballot, int world_size, StepVerdict* verdict) {
  reference_backend().count_ballot(ballot, world_size, verdict);
}

void CpuBackend::clip_factor(const Tensor& squares, const float* inverse_scale, double clip_norm, float* norm,
                             float* factor) {
  reference_backend().clip_factor(squares, inverse_scale, clip_norm, norm, factor);
}

void CpuBackend::update_loss_scale(const LossScaleOptions& options, const float* found_inf, LossScaleState* state) {
  reference_backend().update_loss_scale(options, found_inf, state);
}

void CpuBackend::advance_schedule(const float* found_inf, const Tensor& rates, const Tensor& has_gradient,
                                  const Tensor& steps, ScheduleState* state) {
  reference_backend().advance_schedule(found_inf, rates, has_gradient, steps, state);
}

}  // namespace lockstep::kernels
