// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/functors/ctc.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "runtime/kernels/functors/visit_dtype.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/losses.h"

namespace lockstep::kernels::reference {

namespace {

std::int64_t element(const Tensor& tensor, std::int64_t at) {
  return tensor.as<std::int64_t>()[static_cast<std::size_t>(at)];
}

CtcStates states_of(const CtcTargets& targets, std::int64_t n) {
  return {static_cast<const std::int64_t*>(targets.labels.data()) + n * targets.labels.size(1),
          element(targets.target_lengths, n), targets.blank};
}

/// Calls f with log_probs' element type; float32 and float64 alone pass the checks.
template <class F>
void visit(const Tensor& log_probs, F f) {
  if (log_probs.dtype() == DType::kFloat64) return f(double{});
  f(float{});
}

template <class T>
void losses_of(const Tensor& log_probs, const CtcTargets& targets, T* losses, double* alpha) {
  const std::int64_t steps = log_probs.size(1), classes = log_probs.size(2);
  const std::int64_t most = 2 * targets.labels.size(1) + 1;
  for (std::int64_t n = 0; n < log_probs.size(0); ++n) {
    const CtcStates states = states_of(targets, n);
    const auto* emissions = static_cast<const T*>(log_probs.data()) + n * steps * classes;
    double* after = alpha + n * steps * most;
    const double* before = nullptr;
    for (std::int64_t t = 0; t < element(targets.input_lengths, n); ++t) {
      for (std::int64_t s = 0; s < states.count(); ++s) {
        after[s] = states.reached(before, s) + static_cast<double>(emissions[states.emits(s)]);
      }
      before = after;
      after += most;
      emissions += classes;
    }
    losses[n] = static_cast<T>(before == nullptr ? (states.labels_count == 0 ? 0.0 : INFINITY) : states.loss(before));
  }
}

template <class T>
void gradients_of(const Tensor& log_probs, const CtcTargets& targets, const double* alpha, const T* dlosses,
                  T* gradients) {
  const std::int64_t steps = log_probs.size(1), classes = log_probs.size(2);
  const std::int64_t most = 2 * targets.labels.size(1) + 1;
  std::vector<double> after(static_cast<std::size_t>(most)), here(after.size());
  for (std::int64_t n = 0; n < log_probs.size(0); ++n) {
    const std::int64_t length = element(targets.input_lengths, n);
    if (dlosses[n] == 0 || length == 0) continue;
    const CtcStates states = states_of(targets, n);
    const double loss = states.loss(alpha + (n * steps + length - 1) * most);
    for (std::int64_t t = length - 1; t >= 0; --t) {
      const auto* const emissions = static_cast<const T*>(log_probs.data()) + (n * steps + t) * classes;
      T* const gradient = gradients + (n * steps + t) * classes;
      const double* const reached = alpha + (n * steps + t) * most;
      for (std::int64_t s = 0; s < states.count(); ++s) {
        const double left = states.left(t + 1 < length ? after.data() : nullptr, s);
        const std::int64_t emitted = states.emits(s);
        gradient[emitted] -= static_cast<T>(static_cast<double>(dlosses[n]) * std::exp(reached[s] + left + loss));
        here[static_cast<std::size_t>(s)] = left + static_cast<double>(emissions[emitted]);
      }
      std::swap(after, here);
    }
  }
}

}  // namespace

/// Losses::ctc
void ctc(const Tensor& log_probs, const CtcTargets& targets, const Tensor& losses, const Tensor& alpha) {
  checks::ctc(log_probs, targets, losses, alpha);
  checks::ctc_in_range(log_probs, targets);
  visit(log_probs, [&]<class T>(T) {
    losses_of(log_probs, targets, static_cast<T*>(losses.data()), static_cast<double*>(alpha.data()));
  });
}

/// Losses::ctc_backward
void ctc_backward(const Tensor& log_probs, const CtcTargets& targets, const Tensor& alpha, const Tensor& dlosses,
                  const Tensor& dlog_probs) {
  checks::ctc_backward(log_probs, targets, alpha, dlosses, dlog_probs);
  visit(log_probs, [&]<class T>(T) {
    auto* const gradients = static_cast<T*>(dlog_probs.data());
    std::fill_n(gradients, dlog_probs.numel(), T{0});
    gradients_of(log_probs, targets, static_cast<const double*>(alpha.data()), static_cast<const T*>(dlosses.data()),
                 gradients);
  });
}

}  // namespace lockstep::kernels::reference
