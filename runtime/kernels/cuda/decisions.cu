// SPDX-License-Identifier: Apache-2.0
// A few numbers each, in one block: what counts is how soon it is over.
#include "runtime/kernels/cuda/block_sum.cuh"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/functors/decisions.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::cuda {

namespace {

/// 16 bytes a parameter.
__global__ void __launch_bounds__(kThreads)
    cast_ballot_kernel(std::int64_t parameters, const float* reduced, const float* local, int rank, int world_size,
                       RankState state, float* ballot) {
  for (std::int64_t i = first(); i < parameters; i += step()) {
    const Vote own = vote(reduced[i], local != nullptr ? local + i : nullptr, rank, world_size);
    ballot[i] = own.bad;
    ballot[parameters + i] = own.number;
  }
  if (blockIdx.x != 0 || threadIdx.x >= kStateNumbers) return;
  ballot[2 * parameters + threadIdx.x] = state_number(hash_of(state), threadIdx.x);
}

/// The first of `parameters` that is bad, for all threads of the one block; `parameters` where none is.
template <class IsBad>
__device__ std::int64_t first_bad(std::int64_t parameters, IsBad is_bad) {
  __shared__ unsigned long long first_slot;
  if (threadIdx.x == 0) first_slot = static_cast<unsigned long long>(parameters);
  __syncthreads();
  std::int64_t slot = threadIdx.x;
  while (slot < parameters && !is_bad(slot)) slot += kThreads;
  // The least of integers: the same in any order.
  if (slot < parameters) atomicMin(&first_slot, static_cast<unsigned long long>(slot));
  __syncthreads();
  return static_cast<std::int64_t>(first_slot);
}

/// 4 bytes a parameter.
__global__ void __launch_bounds__(kThreads)
    count_ballot_kernel(std::int64_t parameters, const float* ballot, int world_size, StepVerdict* verdict) {
  const std::int64_t slot = first_bad(parameters, [&](std::int64_t i) { return ballot[i] != 0.0f; });
  if (threadIdx.x != 0) return;
  *verdict = states_differ(ballot + 2 * parameters) ? verdict_on_different_states()
                                                    : verdict_of(ballot, parameters, slot, world_size);
}

/// 8 bytes a parameter.
__global__ void __launch_bounds__(kThreads)
    judge_alone_kernel(std::int64_t parameters, const float* reduced, const float* local, StepVerdict* verdict) {
  const std::int64_t slot =
      first_bad(parameters, [&](std::int64_t i) { return vote_alone(reduced, local, i).bad != 0.0f; });
  if (threadIdx.x != 0) return;
  *verdict = slot == parameters ? StepVerdict() : verdict_on(slot, vote_alone(reduced, local, slot).number, 1);
}

/// 8 bytes a segment.
__global__ void __launch_bounds__(kThreads)
    clip_factor_kernel(std::int64_t segments, const double* squares, const float* inverse_scale, NormLimit limit,
                       float* norm, float* factor) {
  double sum = 0;
  for (std::int64_t i = threadIdx.x; i < segments; i += kThreads) sum += squares[i];
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  const double value = sqrt(sum) * (inverse_scale != nullptr ? static_cast<double>(*inverse_scale) : 1.0);
  *norm = static_cast<float>(value);
  *factor = kernels::clip_factor(value, limit);
}

__global__ void update_loss_scale_kernel(const LossScaleOptions* options, const float* found_inf,
                                         const float* new_scale, LossScaleState* state, StepReport report) {
  move_loss_scale(*options, found_inf, new_scale, *state);
  write_report(report, *state);
}

/// 20 bytes a parameter.
__global__ void __launch_bounds__(kThreads)
    advance_schedule_kernel(const float* found_inf, std::int64_t count, const float* rates, std::int64_t parameters,
                            const float* has_gradient, std::int64_t* steps, ScheduleState* state) {
  const bool rejected = *found_inf != 0.0f;
  for (std::int64_t i = threadIdx.x; i < parameters; i += kThreads) steps[i] += advances(rejected, has_gradient[i]);
  if (threadIdx.x == 0) kernels::advance_schedule(rejected, rates, count, *state);
}

void cast_ballot(const Tensor& reduced, const Tensor& local, int rank, int world_size, const RankState& state,
                 const Tensor& ballot) {
  checks::cast_ballot(reduced, local, ballot);
  const std::int64_t parameters = reduced.numel();
  const Device device = ballot.device();
  const gpu::DeviceGuard guard(device);
  cast_ballot_kernel<<<blocks_for(parameters + kStateNumbers), kThreads, 0, gpu::current(device)>>>(
      parameters, in<float>(reduced), local.defined() ? in<float>(local) : nullptr, rank, world_size, state,
      out<float>(ballot));
  check_launch("cast_ballot");
}

void count_ballot(const Tensor& ballot, int world_size, StepVerdict* verdict) {
  checks::count_ballot(ballot);
  const Device device = ballot.device();
  const gpu::DeviceGuard guard(device);
  count_ballot_kernel<<<1, kThreads, 0, gpu::current(device)>>>((ballot.numel() - kStateNumbers) / 2, in<float>(ballot),
                                                                world_size, verdict);
  check_launch("count_ballot");
}

void judge_alone(const Tensor& reduced, const Tensor& local, StepVerdict* verdict) {
  checks::judge_alone(reduced, local);
  const Device device = reduced.device();
  const gpu::DeviceGuard guard(device);
  judge_alone_kernel<<<1, kThreads, 0, gpu::current(device)>>>(reduced.numel(), in<float>(reduced),
                                                               local.defined() ? in<float>(local) : nullptr, verdict);
  check_launch("judge_alone");
}

void clip_factor(const Tensor& squares, const float* inverse_scale, const NormLimit& limit, float* norm,
                 float* factor) {
  checks::clip_factor(squares);
  const Device device = squares.device();
  const gpu::DeviceGuard guard(device);
  clip_factor_kernel<<<1, kThreads, 0, gpu::current(device)>>>(squares.numel(), in<double>(squares), inverse_scale,
                                                               limit, norm, factor);
  check_launch("clip_factor");
}

void update_loss_scale(Device device, const LossScaleOptions* options, const float* found_inf, const float* new_scale,
                       LossScaleState* state, const StepReport& report) {
  const gpu::DeviceGuard guard(device);
  update_loss_scale_kernel<<<1, 1, 0, gpu::current(device)>>>(options, found_inf, new_scale, state, report);
  check_launch("update_loss_scale");
}

void advance_schedule(const float* found_inf, const Tensor& rates, const Tensor& has_gradient, const Tensor& steps,
                      ScheduleState* state) {
  checks::advance_schedule(rates, has_gradient, steps);
  const Device device = rates.device();
  const gpu::DeviceGuard guard(device);
  advance_schedule_kernel<<<1, kThreads, 0, gpu::current(device)>>>(found_inf, rates.numel(), in<float>(rates),
                                                                    steps.numel(), in<float>(has_gradient),
                                                                    out<std::int64_t>(steps), state);
  check_launch("advance_schedule");
}

}  // namespace

const Decisions kDecisions{.cast_ballot = cast_ballot,
                           .count_ballot = count_ballot,
                           .judge_alone = judge_alone,
                           .clip_factor = clip_factor,
                           .update_loss_scale = update_loss_scale,
                           .advance_schedule = advance_schedule};

}  // namespace lockstep::kernels::cuda
