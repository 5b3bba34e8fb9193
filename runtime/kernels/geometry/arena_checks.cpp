// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "runtime/kernels/arena.h"
#include "runtime/kernels/decisions.h"
#include "runtime/kernels/geometry/check.h"
#include "runtime/kernels/geometry/operand_checks.h"

namespace lockstep::kernels::checks {

void segments(std::string_view operation, std::int64_t base, std::int64_t numel,
              std::span<const ArenaSegment> segments) {
  std::int64_t previous = base;
  for (const ArenaSegment& segment : segments) {
    Check(operation).that(previous <= segment.begin && segment.begin <= segment.end && segment.end <= base + numel,
                          [&] {
                            return "segments must ascend inside [" + std::to_string(base) + ", " +
                                   std::to_string(base + numel) + "), found [" + std::to_string(segment.begin) + ", " +
                                   std::to_string(segment.end) + ") behind " + std::to_string(previous);
                          });
    previous = segment.end;
  }
}

void check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> arena_segments,
                  const Tensor& flags, const Tensor& sum_of_squares) {
  const Check check("check_finite");
  const auto count = static_cast<std::int64_t>(arena_segments.size());
  check.floating("grad", grad).dtype("flags", flags, DType::kFloat32).numel("flags", flags, count);
  if (sum_of_squares.defined()) {
    check.dtype("sum_of_squares", sum_of_squares, DType::kFloat64).numel("sum_of_squares", sum_of_squares, count);
  }
  segments("check_finite", base, grad.numel(), arena_segments);
}

void rescale(const Tensor& in, std::int64_t base, std::span<const ArenaSegment> arena_segments, const Tensor& out,
             const Tensor& flags) {
  const Check check("rescale");
  check.floating("in", in).floating("out", out).numel("out", out, in.numel());
  if (flags.defined()) {
    check.dtype("flags", flags, DType::kFloat32)
        .numel("flags", flags, static_cast<std::int64_t>(arena_segments.size()));
  }
  segments("rescale", base, in.numel(), arena_segments);
}

void mean_step(const Tensor& weights, const Tensor& mean) {
  Check("mean_step")
      .dtype("weights", weights, DType::kFloat32)
      .dtype("mean", mean, DType::kFloat32)
      .numel("mean", mean, weights.numel());
}

void arena_slice(std::string_view operation, const ArenaSlice& slice) {
  const Check check(operation);
  check.dtype("master", slice.master, DType::kFloat32);
  check.floating("grad", slice.grad).numel("grad", slice.grad, slice.master.numel());
  check.that(slice.grad.dtype() != DType::kFloat64, "grad must be float32, float16 or bfloat16, found float64");
  if (slice.copy.defined()) check.floating("copy", slice.copy).numel("copy", slice.copy, slice.master.numel());
  check.that(slice.master_precision == DType::kFloat32 || is_reduced(slice.master_precision),
             "master_precision must be float32, float16 or bfloat16");
  segments(operation, slice.base, slice.master.numel(), slice.segments);
}

void optimizer_state(std::string_view operation, std::string_view name, const ArenaSlice& slice, const Tensor& state) {
  Check(operation)
      .defined("master", slice.master)
      .dtype(name, state, DType::kFloat32)
      .numel(name, state, slice.master.numel());
}

namespace {

/// `width` numbers a parameter, for those of the slice at least.
void parameter_state(std::string_view operation, std::string_view name, const ArenaSlice& slice, const Tensor& state,
                     std::int64_t width) {
  Check(operation).defined("master", slice.master).dtype(name, state, DType::kFloat32);
  for (const ArenaSegment& segment : slice.segments) {
    Check(operation).that(segment.parameter >= 0 && width * (segment.parameter + 1) <= state.numel(), [&] {
      return std::string(name) + " has " + std::to_string(state.numel() / width) +
             " parameters, a segment is of number " + std::to_string(segment.parameter);
    });
  }
}

}  // namespace

void layer_rates(const ArenaSlice& slice, const Tensor& rates) {
  arena_slice("layer_rates", slice);
  parameter_state("layer_rates", "rates", slice, rates, 2);
}

void element_step(const ArenaSlice& slice, int count, const std::vector<Tensor>& states) {
  arena_slice("element_step", slice);
  Check("element_step").that(count <= kMostStates && std::ssize(states) == count, [&] {
    return "the rule has " + std::to_string(count) + " states, found " + std::to_string(states.size());
  });
  for (std::size_t i = 0; i < states.size(); ++i) {
    optimizer_state("element_step", "states[" + std::to_string(i) + "]", slice, states[i]);
  }
}

void novograd_step(const ArenaSlice& slice, const Tensor& m, const Tensor& norms) {
  arena_slice("novograd_step", slice);
  optimizer_state("novograd_step", "m", slice, m);
  parameter_state("novograd_step", "norms", slice, norms, 1);
}

void cast_ballot(const Tensor& reduced, const Tensor& local, const Tensor& ballot) {
  const Check check("cast_ballot");
  check.dtype("reduced", reduced, DType::kFloat32);
  if (local.defined()) check.dtype("local", local, DType::kFloat32).numel("local", local, reduced.numel());
  check.dtype("ballot", ballot, DType::kFloat32).numel("ballot", ballot, 2 * reduced.numel() + kStateNumbers);
}

void judge_alone(const Tensor& reduced, const Tensor& local) {
  const Check check("judge_alone");
  check.dtype("reduced", reduced, DType::kFloat32);
  if (local.defined()) check.dtype("local", local, DType::kFloat32).numel("local", local, reduced.numel());
}

void count_ballot(const Tensor& ballot) { Check("count_ballot").dtype("ballot", ballot, DType::kFloat32); }

void clip_factor(const Tensor& squares) { Check("clip_factor").dtype("squares", squares, DType::kFloat64); }

void advance_schedule(const Tensor& rates, const Tensor& has_gradient, const Tensor& steps) {
  Check("advance_schedule")
      .dtype("rates", rates, DType::kFloat32)
      .that(rates.numel() > 0, "rates must name at least one learning rate")
      .dtype("has_gradient", has_gradient, DType::kFloat32)
      .dtype("steps", steps, DType::kInt64)
      .numel("steps", steps, has_gradient.numel());
}

}  // namespace lockstep::kernels::checks
