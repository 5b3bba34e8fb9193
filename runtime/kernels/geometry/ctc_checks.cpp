// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "runtime/base/error.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/losses.h"

namespace lockstep::kernels::checks {

namespace {

void operands(const Check& check, const Tensor& log_probs, const CtcTargets& targets, const Tensor& losses,
              const Tensor& alpha) {
  check.floating("log_probs", log_probs)
      .that(!is_reduced(log_probs.dtype()), "log_probs must be float32 or float64")
      .that(log_probs.shape().rank() == 3, [&] { return "log_probs must be [N, T, C], found " + describe(log_probs); });
  const std::int64_t n = log_probs.size(0);
  check.dtype("labels", targets.labels, DType::kInt64)
      .that(targets.labels.shape().rank() == 2 && targets.labels.size(0) == n,
            [&] { return "labels must be [N, S], found " + describe(targets.labels); });
  check.dtype("input_lengths", targets.input_lengths, DType::kInt64).shape("input_lengths", targets.input_lengths, {n});
  check.dtype("target_lengths", targets.target_lengths, DType::kInt64)
      .shape("target_lengths", targets.target_lengths, {n});
  check.dtype("losses", losses, log_probs.dtype()).shape("losses", losses, {n});
  check.dtype("alpha", alpha, DType::kFloat64)
      .shape("alpha", alpha, {n, log_probs.size(1), 2 * targets.labels.size(1) + 1});
}

[[noreturn]] void refuse(std::int64_t sample, const std::string& what, std::int64_t found,
                         const std::string& expected) {
  throw UsageError("ctc: " + what + " of sample " + std::to_string(sample) + " is " + std::to_string(found) + ", " +
                   expected);
}

}  // namespace

void ctc(const Tensor& log_probs, const CtcTargets& targets, const Tensor& losses, const Tensor& alpha) {
  operands(Check("ctc"), log_probs, targets, losses, alpha);
}

void ctc_backward(const Tensor& log_probs, const CtcTargets& targets, const Tensor& alpha, const Tensor& dlosses,
                  const Tensor& dlog_probs) {
  const Check check("ctc_backward");
  operands(check, log_probs, targets, dlosses, alpha);
  check.like("dlog_probs", dlog_probs, log_probs);
}

void ctc_in_range(const Tensor& log_probs, const CtcTargets& targets) {
  const std::int64_t steps = log_probs.size(1), classes = log_probs.size(2), most = targets.labels.size(1);
  if (targets.blank < 0 || targets.blank >= classes) {
    throw UsageError("ctc: blank is " + std::to_string(targets.blank) + ", and there are " + std::to_string(classes) +
                     " classes");
  }
  const auto element = [](const Tensor& tensor, std::int64_t at) {
    return tensor.as<std::int64_t>()[static_cast<std::size_t>(at)];
  };
  const auto length_of = [&](const Tensor& lengths, std::int64_t n, const char* what, std::int64_t end) {
    const std::int64_t length = element(lengths, n);
    if (length < 0 || length > end) refuse(n, what, length, "outside [0, " + std::to_string(end) + "]");
    return length;
  };
  for (std::int64_t n = 0; n < log_probs.size(0); ++n) {
    length_of(targets.input_lengths, n, "the input length", steps);
    const std::int64_t count = length_of(targets.target_lengths, n, "the target length", most);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t label = element(targets.labels, n * most + i);
      if (label < 0 || label >= classes) {
        refuse(n, "label " + std::to_string(i), label, "outside [0, " + std::to_string(classes) + ")");
      }
      if (label == targets.blank) refuse(n, "label " + std::to_string(i), label, "the blank");
    }
  }
}

}  // namespace lockstep::kernels::checks
