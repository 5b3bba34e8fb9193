// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <type_traits>
#include <variant>
#include <vector>

#include "runtime/kernels/cuda/optimizer_steps.cuh"

namespace lockstep::kernels::cuda {

namespace {

/// A rule that looks at each element alone, with N states of each.
template <class OfRule, int N>
struct ElementStep : StepOf<typename ElementOf<OfRule>::Type, OfRule> {
  using Rule = typename ElementOf<OfRule>::Type;
  float* states[N > 0 ? N : 1];

  template <int W, class T>
  __device__ void update(const Rule& element, Values<float, W>& master, const Values<T, W>& grad,
                         std::int64_t at) const {
    Values<float, W> values[N > 0 ? N : 1];
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = load<W>(states[i] + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      const float weight = master.values[k], g = to_float(grad.values[k]);
      if constexpr (N == 0) master.values[k] = element(weight, g);
      if constexpr (N == 1) master.values[k] = element(weight, g, values[0].values[k]);
      if constexpr (N == 2) master.values[k] = element(weight, g, values[0].values[k], values[1].values[k]);
      if constexpr (N == 3) {
        master.values[k] = element(weight, g, values[0].values[k], values[1].values[k], values[2].values[k]);
      }
    }
#pragma unroll
    for (int i = 0; i < N; ++i) store(values[i], states[i] + at);
  }
};

template <int N, class Rule>
void launch_element_step(const ArenaSlice& slice, const Rule& rule, const StepScalars& scalars,
                         const std::vector<Tensor>& tensors) {
  if constexpr (takes_states<Rule, N>()) {
    if (rule.states() == N) {
      ElementStep<Rule, N> step{{rule}, {}};
      for (int i = 0; i < N; ++i) step.states[i] = out<float>(tensors[static_cast<std::size_t>(i)]);
      return launch_step("element_step", slice, step, scalars, std::span<float* const>(step.states, N));
    }
  }
  if constexpr (N < kMostStates) launch_element_step<N + 1>(slice, rule, scalars, tensors);
}

}  // namespace

void element_step(const ArenaSlice& slice, const ElementRule& rule, const StepScalars& scalars,
                  const std::vector<Tensor>& states) {
  checks::element_step(slice, states_of(rule), states);
  require_narrow_copy("element_step", slice);
  const auto launch = [&](const auto& of) {
    Check("element_step").that(takes_its_states(of), "the rule's functor does not take its states");
    launch_element_step<0>(slice, of, scalars, states);
  };
  std::visit(launch, rule);
}

}  // namespace lockstep::kernels::cuda
