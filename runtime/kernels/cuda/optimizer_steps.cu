// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/optimizer_steps.cuh"

namespace lockstep::kernels::cuda {

namespace {

struct PlainSgd : StepOf<Sgd, SgdRule> {
  template <int W, class T>
  __device__ void update(const Rule& sgd, Values<float, W>& master, const Values<T, W>& grad, std::int64_t) const {
#pragma unroll
    for (int k = 0; k < W; ++k) master.values[k] = sgd(master.values[k], to_float(grad.values[k]));
  }
};

struct MomentumSgd : StepOf<Sgd, SgdRule> {
  float* momentum;

  template <int W, class T>
  __device__ void update(const Rule& sgd, Values<float, W>& master, const Values<T, W>& grad, std::int64_t at) const {
    Values<float, W> velocity = load<W>(momentum + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      master.values[k] = sgd(master.values[k], to_float(grad.values[k]), velocity.values[k]);
    }
    store(velocity, momentum + at);
  }
};

struct AdamStep : StepOf<Adam, AdamRule> {
  float* m;
  float* v;

  template <int W, class T>
  __device__ void update(const Rule& adam, Values<float, W>& master, const Values<T, W>& grad, std::int64_t at) const {
    Values<float, W> first = load<W>(m + at);
    Values<float, W> second = load<W>(v + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      master.values[k] = adam(master.values[k], to_float(grad.values[k]), first.values[k], second.values[k]);
    }
    store(first, m + at);
    store(second, v + at);
  }
};

struct AmsgradStep : StepOf<Adam, AdamRule> {
  float* m;
  float* v;
  float* max_v;

  template <int W, class T>
  __device__ void update(const Rule& adam, Values<float, W>& master, const Values<T, W>& grad, std::int64_t at) const {
    Values<float, W> first = load<W>(m + at);
    Values<float, W> second = load<W>(v + at);
    Values<float, W> largest = load<W>(max_v + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      master.values[k] =
          adam(master.values[k], to_float(grad.values[k]), first.values[k], second.values[k], largest.values[k]);
    }
    store(first, m + at);
    store(second, v + at);
    store(largest, max_v + at);
  }
};

struct AdagradStep : StepOf<Adagrad, AdagradRule> {
  float* sum;

  template <int W, class T>
  __device__ void update(const Rule& adagrad, Values<float, W>& master, const Values<T, W>& grad,
                         std::int64_t at) const {
    Values<float, W> squares = load<W>(sum + at);
#pragma unroll
    for (int k = 0; k < W; ++k) {
      master.values[k] = adagrad(master.values[k], to_float(grad.values[k]), squares.values[k]);
    }
    store(squares, sum + at);
  }
};

}  // namespace

void sgd_step(const ArenaSlice& slice, const SgdRule& rule, const StepScalars& scalars, const Tensor& momentum) {
  checks::arena_slice("sgd_step", slice);
  require_narrow_copy("sgd_step", slice);
  if (rule.momentum == 0) {
    return launch_step("sgd_step", slice, PlainSgd{rule}, scalars, {});
  }
  checks::optimizer_state("sgd_step", "momentum", slice, momentum);
  float* velocity = out<float>(momentum);
  launch_step("sgd_step", slice, MomentumSgd{rule, velocity}, scalars, {velocity});
}

void adam_step(const ArenaSlice& slice, const AdamRule& rule, const StepScalars& scalars, const Tensor& m,
               const Tensor& v, const Tensor& max_v) {
  checks::adam_step(slice, rule, m, v, max_v);
  require_narrow_copy("adam_step", slice);
  if (rule.amsgrad) {
    const AmsgradStep step{rule, out<float>(m), out<float>(v), out<float>(max_v)};
    return launch_step("adam_step", slice, step, scalars, {step.m, step.v, step.max_v});
  }
  const AdamStep step{rule, out<float>(m), out<float>(v)};
  launch_step("adam_step", slice, step, scalars, {step.m, step.v});
}

void adagrad_step(const ArenaSlice& slice, const AdagradRule& rule, const StepScalars& scalars, const Tensor& sum) {
  checks::arena_slice("adagrad_step", slice);
  checks::optimizer_state("adagrad_step", "sum", slice, sum);
  require_narrow_copy("adagrad_step", slice);
  const AdagradStep step{rule, out<float>(sum)};
  launch_step("adagrad_step", slice, step, scalars, {step.sum});
}

}  // namespace lockstep::kernels::cuda
