// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cuda/block_sum.cuh"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/last_block.cuh"
#include "runtime/kernels/cuda/rows.cuh"
#include "runtime/kernels/functors/log_sum_exp.h"
#include "runtime/kernels/functors/pair_loss.h"
#include "runtime/kernels/geometry/operand_checks.h"
#include "runtime/kernels/losses.h"

namespace lockstep::kernels::cuda {

// ctc.cu
Function<decltype(Losses::ctc)> ctc;
Function<decltype(Losses::ctc_backward)> ctc_backward;

namespace {

/// Where the sum of a loss goes.
struct LossSum {
  double* partials;  ///< one a block
  unsigned ticket;
  double weight;
  float* loss;

  /// The last thing that a kernel does: *loss = weight * the sum of what its threads have found, in an order that
  /// follows from the grid.
  __device__ void add(double found) const {
    found = block_sum(found);
    if (threadIdx.x == 0) partials[blockIdx.x] = found;
    if (!is_last_block(ticket)) return;
    double sum = 0;
    for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) sum += __ldcg(partials + i);
    sum = block_sum(sum);
    if (threadIdx.x == 0) *loss = static_cast<float>(weight * sum);
  }
};

/// CrossEntropyTargets as kernels take them: weights that are not there are null.
struct Targets {
  const std::int64_t* classes;
  const float* class_weights;
  const float* row_weights;
  const float* all_classes;  ///< the sum of class_weights
  float smoothing;

  /// sum: of the class weights, a float32 scalar where there are some.
  Targets(const CrossEntropyTargets& targets, const Tensor& sum)
      : classes(in<std::int64_t>(targets.classes)),
        class_weights(targets.class_weights.defined() ? in<float>(targets.class_weights) : nullptr),
        row_weights(targets.row_weights.defined() ? in<float>(targets.row_weights) : nullptr),
        all_classes(sum.defined() ? in<float>(sum) : nullptr),
        smoothing(static_cast<float>(targets.label_smoothing)) {}

  __device__ float of_row(std::int64_t row) const { return row_weights == nullptr ? 1.0f : row_weights[row]; }
  __device__ float of_class(std::int64_t c) const { return class_weights == nullptr ? 1.0f : class_weights[c]; }
  __device__ float of_all(std::int64_t classes_in_all) const {
    return class_weights == nullptr ? static_cast<float>(classes_in_all) : *all_classes;
  }
};

/// One block: *sum = the sum of n weights.
__global__ void __launch_bounds__(kThreads) sum_weights(const float* weights, std::int64_t n, float* sum) {
  double part = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += kThreads) part += weights[i];
  part = block_sum(part);
  if (threadIdx.x == 0) *sum = static_cast<float>(part);
}

/// The sum of the class weights as a scalar of the device, undefined where there are none.
Tensor sum_of_class_weights(const CrossEntropyTargets& targets, cudaStream_t stream) {
  if (!targets.class_weights.defined()) return {};
  const Tensor sum = Tensor::empty({}, DType::kFloat32, targets.class_weights.device());
  sum_weights<<<1, kThreads, 0, stream>>>(in<float>(targets.class_weights), targets.class_weights.numel(),
                                          out<float>(sum));
  check_launch("cross_entropy, the sum of the class weights");
  return sum;
}

/// The sum over the rows. Reads each logit once: 2 bytes of 16-bit types, 4 of float32; twice where classes are
/// weighted and labels smoothed.
template <class T, int W, bool weighted, class Team>
__global__ void __launch_bounds__(kThreads)
    losses_of_rows(const T* logits, const Targets targets, float* log_sum_exp, LossSum total, std::int64_t rows,
                   std::int64_t channels, Team team) {
  double loss = 0;
  for_each_row(team, rows, [&](std::int64_t row, bool live) {
    const T* const from = logits + row * channels;
    const std::int64_t n = live ? channels : 0;
    const bool leads = live && team.rank() == 0;
    // The target's logit is read first, to be there when the sums are. A target that is no class makes the loss NaN.
    float of_target = NAN;
    if (leads) {
      const std::int64_t target = targets.classes[row];
      if (target >= 0 && target < channels) of_target = to_float(from[target]);
    }
    Exponentials part;
    const std::int64_t stride = static_cast<std::int64_t>(team.size) * W;
    for (std::int64_t c = static_cast<std::int64_t>(team.rank()) * W; c < n; c += stride) {
      const Values<T, W> values = load<W>(from + c);
      float largest = to_float(values.values[0]);
#pragma unroll
      for (int w = 1; w < W; ++w) largest = fmaxf(largest, to_float(values.values[w]));
      part.raise(largest);
#pragma unroll
      for (int w = 0; w < W; ++w) part.add(to_float(values.values[w]));
    }
    part.raise(team.max(part.max));
    const float sum = team.sum(part.sum);
    float distance = team.sum(part.distance);
    if (weighted && targets.class_weights != nullptr && targets.smoothing > 0) {
      distance = 0;
      for (std::int64_t c = team.rank(); c < n; c += team.size) {
        distance += targets.class_weights[c] * (part.max - to_float(from[c]));
      }
      distance = team.sum(distance);
    }
    if (!leads) return;
    const float log_sum = logf(sum);
    log_sum_exp[row] = part.max + log_sum;
    if constexpr (weighted) {
      const float of_row = targets.of_row(row);
      if (of_row == 0) return;
      // No class has no weight: the target's is looked up only where there is one.
      float term = part.max - of_target + log_sum;
      if (!isnan(of_target)) term *= (1 - targets.smoothing) * targets.of_class(targets.classes[row]);
      if (targets.smoothing > 0) {
        term += targets.smoothing / static_cast<float>(channels) * (distance + targets.of_all(channels) * log_sum);
      }
      loss += static_cast<double>(of_row) * static_cast<double>(term);
    } else {
      loss += static_cast<double>(kernels::cross_entropy(part.max - of_target, distance, static_cast<float>(channels),
                                                         log_sum, targets.smoothing));
    }
  });
  total.add(loss);
}

/// Moves 4 bytes an element of 16-bit types and 8 of float32. The gradient of a loss that is NaN is NaN.
template <class T, int W, bool weighted>
__global__ void __launch_bounds__(kThreads)
    gradients_of_rows(const T* logits, const Targets targets, double weight, const float* log_sum_exp,
                      const float* dloss, T* dlogits, std::int64_t rows, std::int64_t channels, Lanes team) {
  const float factor = static_cast<float>(static_cast<double>(*dloss) * weight);
  const float everywhere = targets.smoothing / static_cast<float>(channels);
  const float all_classes = weighted ? targets.of_all(channels) : 0.0f;
  for_each_row(team, rows, [&](std::int64_t row, bool live) {
    if (!live) return;
    const std::int64_t target = targets.classes[row];
    const bool is_class = target >= 0 && target < channels;
    const float log_sum = is_class ? log_sum_exp[row] : NAN;
    const float of_row = weighted ? targets.of_row(row) : 1.0f;
    const float of_target = (1.0f - targets.smoothing) * (weighted && is_class ? targets.of_class(target) : 1.0f);
    const float share = weighted ? of_target + everywhere * all_classes : 1.0f;
    const std::int64_t stride = static_cast<std::int64_t>(team.size) * W;
    for (std::int64_t c = static_cast<std::int64_t>(team.rank()) * W; c < channels; c += stride) {
      Values<T, W> values = load<W>(logits + row * channels + c);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        float g = fast_exp(to_float(values.values[w]) - log_sum);
        if constexpr (weighted) {
          g = share * g - everywhere * targets.of_class(c + w);
        } else {
          g -= everywhere;
        }
        if (c + w == target) g -= of_target;
        values.values[w] = from_float<T>(of_row == 0 ? 0.0f : factor * of_row * g);
      }
      store(values, dlogits + row * channels + c);
    }
  });
}

/// The sum of value(x, target). Reads both types' bytes an element.
template <class X, class Y, int W, class Function>
__global__ void __launch_bounds__(kThreads)
    pair_losses(Function function, const X* x, const Y* target, std::int64_t n, LossSum total) {
  double sum = 0;
  const std::int64_t packs = n / W;
#pragma unroll 2
  for (std::int64_t i = first(); i < packs; i += step()) {
    const Values<X, W> found = load<W>(x + i * W);
    const Values<Y, W> wanted = load<W>(target + i * W);
    float of_pack = 0;
#pragma unroll
    for (int w = 0; w < W; ++w) of_pack += function.value(to_float(found.values[w]), to_float(wanted.values[w]));
    sum += static_cast<double>(of_pack);
  }
  for (std::int64_t i = packs * W + first(); i < n; i += step()) {
    sum += static_cast<double>(function.value(to_float(x[i]), to_float(target[i])));
  }
  total.add(sum);
}

/// Moves sizeof(X) + sizeof(Y) + sizeof(Out) bytes an element.
template <class X, class Y, class Out, int W, class Slope>
__global__ void __launch_bounds__(kThreads) pair_gradients(Slope slope, const X* x, const Y* target, const float* dloss,
                                                           double weight, Out* gradient, std::int64_t n) {
  const float factor = static_cast<float>(static_cast<double>(*dloss) * weight);
  const std::int64_t packs = n / W;
  for (std::int64_t i = first(); i < packs; i += step()) {
    const Values<X, W> found = load<W>(x + i * W);
    const Values<Y, W> wanted = load<W>(target + i * W);
    Values<Out, W> result;
#pragma unroll
    for (int w = 0; w < W; ++w) {
      result.values[w] = from_float<Out>(factor * slope(to_float(found.values[w]), to_float(wanted.values[w])));
    }
    store(result, gradient + i * W);
  }
  for (std::int64_t i = packs * W + first(); i < n; i += step()) {
    gradient[i] = from_float<Out>(factor * slope(to_float(x[i]), to_float(target[i])));
  }
}

void cross_entropy(const Tensor& logits, const CrossEntropyTargets& targets, double weight, const Tensor& loss,
                   const Tensor& log_sum_exp) {
  checks::cross_entropy(logits, targets, loss, log_sum_exp);
  const Device device = loss.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::int64_t rows = logits.shape().rows();
  const std::int64_t channels = logits.shape().back();
  const Tensor all_classes = sum_of_class_weights(targets, stream);
  visit_channels(
      "cross_entropy", logits.dtype(), channels,
      [&]<class T, int W>() {
        const RowGrid grid = grid_of_rows<W>(rows, channels, kThreads);
        const Tensor partials = Tensor::empty({static_cast<std::int64_t>(grid.blocks)}, DType::kFloat64, device);
        const LossSum total{out<double>(partials), next_ticket(stream), weight, out<float>(loss)};
        const auto launch = [&]<bool weighted, class Team>(Team team) {
          losses_of_rows<T, W, weighted, Team><<<grid.blocks, kThreads, 0, stream>>>(
              in<T>(logits), Targets(targets, all_classes), out<float>(log_sum_exp), total, rows, channels, team);
        };
        const auto launch_for = [&](auto team) {
          targets.weighted() ? launch.template operator()<true>(team) : launch.template operator()<false>(team);
        };
        grid.of_warps(channels) ? launch_for(Lanes{grid.team}) : launch_for(WholeBlock{grid.team});
        check_launch("cross_entropy");
      },
      logits.data());
}

void cross_entropy_backward(const Tensor& logits, const CrossEntropyTargets& targets, double weight,
                            const Tensor& log_sum_exp, const Tensor& dloss, const Tensor& dlogits) {
  checks::cross_entropy(logits, targets, dloss, log_sum_exp);
  checks::same("cross_entropy_backward", logits, dlogits);
  if (logits.numel() == 0) return;
  const Device device = dlogits.device();
  const gpu::DeviceGuard guard(device);
  const std::int64_t rows = logits.shape().rows();
  const std::int64_t channels = logits.shape().back();
  const Tensor all_classes = sum_of_class_weights(targets, gpu::current(device));
  visit_channels(
      "cross_entropy_backward", logits.dtype(), channels,
      [&]<class T, int W>() {
        const RowGrid grid = grid_of_rows<W>(rows, channels, kThreads);
        const auto launch = [&]<bool weighted>() {
          gradients_of_rows<T, W, weighted><<<grid.blocks, kThreads, 0, gpu::current(device)>>>(
              in<T>(logits), Targets(targets, all_classes), weight, in<float>(log_sum_exp), in<float>(dloss),
              out<T>(dlogits), rows, channels, Lanes{grid.team});
        };
        targets.weighted() ? launch.template operator()<true>() : launch.template operator()<false>();
        check_launch("cross_entropy_backward");
      },
      logits.data(), dlogits.data());
}

/// Calls f.template operator()<X, Y, W>() with the types of x and its target, and the elements that a thread takes at a
/// time.
template <class F, class... Pointers>
void visit_pairs(std::string_view operation, const Tensor& x, const Tensor& target, F&& f,
                 const Pointers*... pointers) {
  visit_channels(
      operation, x.dtype(), 0,
      [&]<class X, int W>() {
        if (target.dtype() == x.dtype()) return f.template operator()<X, X, W>();
        if constexpr (!std::is_same_v<X, float>) f.template operator()<X, float, W>();
      },
      x.data(), target.data(), pointers...);
}

void pair_loss(const PairLossFunction& which, const Tensor& x, const Tensor& target, double weight,
               const Tensor& loss) {
  checks::pair_loss(x, target, loss);
  const Device device = loss.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::int64_t n = x.numel();
  visit_pair_loss(which, [&](auto function) {
    visit_pairs("pair_loss", x, target, [&]<class X, class Y, int W>() {
      const unsigned blocks = blocks_for((n + W - 1) / W);
      const Tensor partials = Tensor::empty({static_cast<std::int64_t>(blocks)}, DType::kFloat64, device);
      const LossSum total{out<double>(partials), next_ticket(stream), weight, out<float>(loss)};
      pair_losses<X, Y, W><<<blocks, kThreads, 0, stream>>>(function, in<X>(x), in<Y>(target), n, total);
      check_launch("pair_loss");
    });
  });
}

void pair_loss_backward(const PairLossFunction& which, const Tensor& x, const Tensor& target, PairSide side,
                        double weight, const Tensor& dloss, const Tensor& gradient) {
  checks::pair_loss_backward(x, target, side, dloss, gradient);
  if (x.numel() == 0) return;
  const Device device = gradient.device();
  const gpu::DeviceGuard guard(device);
  const cudaStream_t stream = gpu::current(device);
  const std::int64_t n = x.numel();
  visit_pair_slope(which, side, [&](auto slope) {
    visit_pairs(
        "pair_loss_backward", x, target,
        [&]<class X, class Y, int W>() {
          const auto launch = [&]<class Out>() {
            pair_gradients<X, Y, Out, W><<<blocks_for((n + W - 1) / W), kThreads, 0, stream>>>(
                slope, in<X>(x), in<Y>(target), in<float>(dloss), weight, out<Out>(gradient), n);
          };
          side == PairSide::kX ? launch.template operator()<X>() : launch.template operator()<Y>();
          check_launch("pair_loss_backward");
        },
        gradient.data());
  });
}

}  // namespace

const Losses kLosses{.cross_entropy = cross_entropy,
                     .cross_entropy_backward = cross_entropy_backward,
                     .pair_loss = pair_loss,
                     .pair_loss_backward = pair_loss_backward,
                     .ctc = ctc,
                     .ctc_backward = ctc_backward};

}  // namespace lockstep::kernels::cuda
