// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch.cuh"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/functors/ctc.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/losses.h"

// A block a sample, a thread a state. Elements come one after the other, with a barrier between them.

namespace lockstep::kernels::cuda {

namespace {

struct CtcProblem {
  std::int64_t samples, steps, classes, most_labels, blank;
  const float* log_probs;
  const std::int64_t* labels;
  const std::int64_t* input_lengths;
  const std::int64_t* target_lengths;

  CtcProblem(const Tensor& probs, const CtcTargets& targets)
      : samples(probs.size(0)),
        steps(probs.size(1)),
        classes(probs.size(2)),
        most_labels(targets.labels.size(1)),
        blank(targets.blank),
        log_probs(in<float>(probs)),
        labels(in<std::int64_t>(targets.labels)),
        input_lengths(in<std::int64_t>(targets.input_lengths)),
        target_lengths(in<std::int64_t>(targets.target_lengths)) {}

  __device__ std::int64_t most_states() const { return 2 * most_labels + 1; }
  __device__ CtcStates states(std::int64_t n) const { return {labels + n * most_labels, target_lengths[n], blank}; }
  /// Whether the sample's lengths and labels are what checks::ctc_in_range() takes.
  __device__ bool fits(std::int64_t n) const {
    const std::int64_t count = target_lengths[n];
    if (input_lengths[n] < 0 || input_lengths[n] > steps || count < 0 || count > most_labels) return false;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t label = labels[n * most_labels + i];
      if (label < 0 || label >= classes || label == blank) return false;
    }
    return true;
  }
  __device__ double emission(const CtcStates& states, std::int64_t n, std::int64_t t, std::int64_t s) const {
    return log_probs[(n * steps + t) * classes + states.emits(s)];
  }
};

__global__ void __launch_bounds__(kThreads) losses_kernel(CtcProblem problem, float* losses, double* alpha) {
  for (std::int64_t n = blockIdx.x; n < problem.samples; n += gridDim.x) {
    if (!problem.fits(n)) {
      if (threadIdx.x == 0) losses[n] = NAN;
      continue;
    }
    const CtcStates states = problem.states(n);
    double* after = alpha + n * problem.steps * problem.most_states();
    const double* before = nullptr;
    for (std::int64_t t = 0; t < problem.input_lengths[n]; ++t) {
      for (std::int64_t s = threadIdx.x; s < states.count(); s += blockDim.x) {
        after[s] = states.reached(before, s) + problem.emission(states, n, t, s);
      }
      __syncthreads();
      before = after;
      after += problem.most_states();
    }
    if (threadIdx.x > 0) continue;
    losses[n] = static_cast<float>(before != nullptr ? states.loss(before) : states.labels_count == 0 ? 0 : INFINITY);
  }
}

/// The sum over the states that emit the same class as state s, where s is the first of them; else nothing is to do.
__device__ bool sum_of_class(const CtcStates& states, const double* shares, std::int64_t s, double* sum) {
  const std::int64_t emitted = states.emits(s);
  if (s % 2 == 0 && s > 0) return false;
  for (std::int64_t earlier = 1; s % 2 == 1 && earlier < s; earlier += 2) {
    if (states.emits(earlier) == emitted) return false;
  }
  *sum = 0;
  for (std::int64_t each = s; each < states.count(); each += 2) {
    if (states.emits(each) == emitted) *sum += shares[each];
  }
  return true;
}

/// scratch [samples, 3, states]: the paths to the end of two elements, and the states' shares. gradients are 0.
__global__ void __launch_bounds__(kThreads)
    gradients_kernel(CtcProblem problem, const double* alpha, const float* dlosses, double* scratch, float* gradients) {
  const std::int64_t most = problem.most_states(), row = problem.classes;
  for (std::int64_t n = blockIdx.x; n < problem.samples; n += gridDim.x) {
    float* const of_sample = gradients + n * problem.steps * row;
    if (!problem.fits(n)) {
      for (std::int64_t i = threadIdx.x; i < problem.steps * row; i += blockDim.x) of_sample[i] = NAN;
      continue;
    }
    const std::int64_t length = problem.input_lengths[n];
    const double dloss = dlosses[n];
    if (dloss == 0 || length == 0) continue;
    const CtcStates states = problem.states(n);
    const double loss = states.loss(alpha + (n * problem.steps + length - 1) * most);
    double* here = scratch + n * 3 * most;
    double* after = here + most;
    double* const shares = after + most;
    for (std::int64_t t = length - 1; t >= 0; --t) {
      const double* const reached = alpha + (n * problem.steps + t) * most;
      for (std::int64_t s = threadIdx.x; s < states.count(); s += blockDim.x) {
        const double left = states.left(t + 1 < length ? after : nullptr, s);
        shares[s] = exp(reached[s] + left + loss);
        here[s] = left + problem.emission(states, n, t, s);
      }
      __syncthreads();
      for (std::int64_t s = threadIdx.x; s < states.count(); s += blockDim.x) {
        double sum = 0;
        if (!sum_of_class(states, shares, s, &sum)) continue;
        of_sample[t * row + states.emits(s)] = static_cast<float>(-dloss * sum);
      }
      __syncthreads();
      double* const last = here;
      here = after;
      after = last;
    }
  }
}

unsigned blocks_of(const Tensor& log_probs) { return blocks_for(log_probs.size(0), 1); }

}  // namespace

void ctc(const Tensor& log_probs, const CtcTargets& targets, const Tensor& losses, const Tensor& alpha) {
  checks::ctc(log_probs, targets, losses, alpha);
  if (losses.numel() == 0) return;
  if (targets.blank < 0 || targets.blank >= log_probs.size(2)) return kElementwise.fill(losses, NAN);
  const gpu::DeviceGuard guard(losses.device());
  visit_floating("ctc", log_probs.dtype(), [&]<class T>() {
    losses_kernel<<<blocks_of(log_probs), kThreads, 0, gpu::current(losses.device())>>>(
        CtcProblem(log_probs, targets), out<float>(losses), out<double>(alpha));
  });
  check_launch("ctc");
}

void ctc_backward(const Tensor& log_probs, const CtcTargets& targets, const Tensor& alpha, const Tensor& dlosses,
                  const Tensor& dlog_probs) {
  checks::ctc_backward(log_probs, targets, alpha, dlosses, dlog_probs);
  const bool blank_is_there = targets.blank >= 0 && targets.blank < log_probs.size(2);
  kElementwise.fill(dlog_probs, blank_is_there ? 0 : NAN);
  if (dlog_probs.numel() == 0 || !blank_is_there) return;
  const Device device = dlog_probs.device();
  const gpu::DeviceGuard guard(device);
  const Tensor scratch = Tensor::empty({log_probs.size(0), 3, alpha.size(2)}, DType::kFloat64, device);
  gradients_kernel<<<blocks_of(log_probs), kThreads, 0, gpu::current(device)>>>(
      CtcProblem(log_probs, targets), in<double>(alpha), in<float>(dlosses), out<double>(scratch),
      out<float>(dlog_probs));
  check_launch("ctc_backward");
}

}  // namespace lockstep::kernels::cuda
