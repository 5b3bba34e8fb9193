// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/kernels/cpu/cpu_backend.h"
#include "runtime/kernels/cuda_backend.h"
#include "runtime/kernels/versions.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::kernels {

namespace {

using gpu::emulation::on_host;

Epilogue on_host(Epilogue epilogue) {
  for (Tensor* tensor : {&epilogue.bias, &epilogue.preactivation, &epilogue.derivative_at, &epilogue.bias_gradient}) {
    *tensor = on_host(*tensor);
  }
  return epilogue;
}

/// A slice whose segments are its own.
class Slice {
 public:
  explicit Slice(const ArenaSlice& slice) : slice_(slice), segments_(slice.segments.begin(), slice.segments.end()) {
    for (Tensor* tensor : {&slice_.master, &slice_.grad, &slice_.copy}) *tensor = on_host(*tensor);
  }
  const ArenaSlice& get() {
    slice_.segments = segments_;
    return slice_;
  }

 private:
  ArenaSlice slice_;
  std::vector<ArenaSegment> segments_;
};

/// The CPU's kernels, each run when its stream comes to it.
class EmulatedBackend final : public Backend {
 public:
  explicit EmulatedBackend(Device device) : device_(device) {}
  std::string_view name() const override { return "emulated"; }

  void fill(const Tensor& out, double value) override {
    run([out = on_host(out), value](Backend& cpu) mutable { cpu.fill(out, value); });
  }

  void cast(const Tensor& in, const Tensor& out) override {
    run([in = on_host(in), out = on_host(out)](Backend& cpu) mutable { cpu.cast(in, out); });
  }

  void copy_unless(const float* rejected, const Tensor& in, const Tensor& out) override {
    run([rejected, in = on_host(in), out = on_host(out)](Backend& cpu) mutable { cpu.copy_unless(rejected, in, out); });
  }

  void accumulate(const Tensor& in, const Tensor& out) override {
    run([in = on_host(in), out = on_host(out)](Backend& cpu) mutable { cpu.accumulate(in, out); });
  }

  void add(const Tensor& a, const Tensor& b, const Tensor& out) override {
    run([a = on_host(a), b = on_host(b), out = on_host(out)](Backend& cpu) mutable { cpu.add(a, b, out); });
  }

  void multiply(const Tensor& a, const Tensor& b, const Tensor& out) override {
    run([a = on_host(a), b = on_host(b), out = on_host(out)](Backend& cpu) mutable { cpu.multiply(a, b, out); });
  }

  void scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out) override {
    run([in = on_host(in), factor, device_factor, out = on_host(out)](Backend& cpu) mutable {
      cpu.scale(in, factor, device_factor, out);
    });
  }

  void activate(Activation activation, const Tensor& x, const Tensor& y) override {
    run([activation, x = on_host(x), y = on_host(y)](Backend& cpu) mutable { cpu.activate(activation, x, y); });
  }

  void activate_backward(Activation activation, const Tensor& x, const Tensor& dy, const Tensor& dx) override {
    run([activation, x = on_host(x), dy = on_host(dy), dx = on_host(dx)](Backend& cpu) mutable {
      cpu.activate_backward(activation, x, dy, dx);
    });
  }

  void dropout(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element, const Tensor& y) override {
    run([x = on_host(x), p, key, first_element, y = on_host(y)](Backend& cpu) mutable {
      cpu.dropout(x, p, key, first_element, y);
    });
  }

  void sum(const Tensor& x, double factor, const Tensor& out) override {
    run([x = on_host(x), factor, out = on_host(out)](Backend& cpu) mutable { cpu.sum(x, factor, out); });
  }

  void sum_rows(const Tensor& x, bool accumulate, const Tensor& out) override {
    run([x = on_host(x), accumulate, out = on_host(out)](Backend& cpu) mutable { cpu.sum_rows(x, accumulate, out); });
  }

  void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
              bool accumulate, const Tensor& out) override {
    run([a = on_host(a), transpose_a, b = on_host(b), transpose_b, epilogue = on_host(epilogue), accumulate,
         out = on_host(out)](Backend& cpu) { cpu.matmul(a, transpose_a, b, transpose_b, epilogue, accumulate, out); });
  }

  void conv_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const Tensor& y) override {
    run([geometry, x = on_host(x), weight = on_host(weight), bias = on_host(bias),
         y = on_host(y)](Backend& cpu) mutable { cpu.conv_forward(geometry, x, weight, bias, y); });
  }

  void conv_backward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& dy,
                     const Tensor& dx, const Tensor& dweight, const Tensor& dbias, bool accumulate) override {
    run([geometry, x = on_host(x), weight = on_host(weight), dy = on_host(dy), dx = on_host(dx),
         dweight = on_host(dweight), dbias = on_host(dbias), accumulate](Backend& cpu) mutable {
      cpu.conv_backward(geometry, x, weight, dy, dx, dweight, dbias, accumulate);
    });
  }

  void pool_forward(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices) override {
    run([geometry, x = on_host(x), y = on_host(y), indices = on_host(indices)](Backend& cpu) mutable {
      cpu.pool_forward(geometry, x, y, indices);
    });
  }

  void pool_backward(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices, const Tensor& dx) override {
    run([geometry, dy = on_host(dy), indices = on_host(indices), dx = on_host(dx)](Backend& cpu) mutable {
      cpu.pool_backward(geometry, dy, indices, dx);
    });
  }

  void global_average_pool(const Tensor& x, const Tensor& y) override {
    run([x = on_host(x), y = on_host(y)](Backend& cpu) mutable { cpu.global_average_pool(x, y); });
  }

  void global_average_pool_backward(const Tensor& dy, const Tensor& dx) override {
    run([dy = on_host(dy), dx = on_host(dx)](Backend& cpu) mutable { cpu.global_average_pool_backward(dy, dx); });
  }

  void softmax(const Tensor& x, bool log, const Tensor& y) override {
    run([x = on_host(x), log, y = on_host(y)](Backend& cpu) mutable { cpu.softmax(x, log, y); });
  }

  void softmax_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) override {
    run([y = on_host(y), log, dy = on_host(dy), dx = on_host(dx)](Backend& cpu) mutable {
      cpu.softmax_backward(y, log, dy, dx);
    });
  }

  void cross_entropy(const Tensor& logits, const Tensor& targets, double label_smoothing, double weight,
                     const Tensor& loss, const Tensor& log_sum_exp) override {
    run([logits = on_host(logits), targets = on_host(targets), label_smoothing, weight, loss = on_host(loss),
         log_sum_exp = on_host(log_sum_exp)](Backend& cpu) mutable {
      cpu.cross_entropy(logits, targets, label_smoothing, weight, loss, log_sum_exp);
    });
  }

  void cross_entropy_backward(const Tensor& logits, const Tensor& targets, double label_smoothing, double weight,
                              const Tensor& log_sum_exp, const Tensor& dloss, const Tensor& dlogits) override {
    run([logits = on_host(logits), targets = on_host(targets), label_smoothing, weight,
         log_sum_exp = on_host(log_sum_exp), dloss = on_host(dloss), dlogits = on_host(dlogits)](Backend& cpu) mutable {
      cpu.cross_entropy_backward(logits, targets, label_smoothing, weight, log_sum_exp, dloss, dlogits);
    });
  }

  void mse(const Tensor& x, const Tensor& target, double weight, const Tensor& loss) override {
    run([x = on_host(x), target = on_host(target), weight, loss = on_host(loss)](Backend& cpu) mutable {
      cpu.mse(x, target, weight, loss);
    });
  }

  void mse_backward(const Tensor& x, const Tensor& target, double weight, const Tensor& dloss,
                    const Tensor& dx) override {
    run([x = on_host(x), target = on_host(target), weight, dloss = on_host(dloss),
         dx = on_host(dx)](Backend& cpu) mutable { cpu.mse_backward(x, target, weight, dloss, dx); });
  }

  void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& m2) override {
    run([x = on_host(x), mean = on_host(mean), m2 = on_host(m2)](Backend& cpu) mutable {
      cpu.batch_norm_statistics(x, mean, m2);
    });
  }

  void batch_norm_finalize(const Tensor& packed, double epsilon, double momentum, const Tensor& running,
                           const Tensor& mean, const Tensor& inv_std, const Tensor& count,
                           const Tensor& next_running) override {
    run([packed = on_host(packed), epsilon, momentum, running = on_host(running), mean = on_host(mean),
         inv_std = on_host(inv_std), count = on_host(count),
         next_running = on_host(next_running)](Backend& cpu) mutable {
      cpu.batch_norm_finalize(packed, epsilon, momentum, running, mean, inv_std, count, next_running);
    });
  }

  void batch_norm_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                        const Tensor& beta, const Tensor& residual, bool relu, const Tensor& y) override {
    run([x = on_host(x), mean = on_host(mean), inv_std = on_host(inv_std), gamma = on_host(gamma), beta = on_host(beta),
         residual = on_host(residual), relu, y = on_host(y)](Backend& cpu) mutable {
      cpu.batch_norm_apply(x, mean, inv_std, gamma, beta, residual, relu, y);
    });
  }

  void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const Tensor& dy, const Tensor& y, bool relu,
                                  const Tensor& sum_dy, const Tensor& sum_dy_xmu) override {
    run([x = on_host(x), mean = on_host(mean), dy = on_host(dy), y = on_host(y), relu, sum_dy = on_host(sum_dy),
         sum_dy_xmu = on_host(sum_dy_xmu)](Backend& cpu) mutable {
      cpu.batch_norm_backward_reduce(x, mean, dy, y, relu, sum_dy, sum_dy_xmu);
    });
  }

  void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                 const Tensor& dy, const Tensor& y, bool relu, const Tensor& sum_dy,
                                 const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx,
                                 const Tensor& dresidual) override {
    run([x = on_host(x), mean = on_host(mean), inv_std = on_host(inv_std), gamma = on_host(gamma), dy = on_host(dy),
         y = on_host(y), relu, sum_dy = on_host(sum_dy), sum_dy_xmu = on_host(sum_dy_xmu), count = on_host(count),
         dx = on_host(dx), dresidual = on_host(dresidual)](Backend& cpu) mutable {
      cpu.batch_norm_backward_apply(x, mean, inv_std, gamma, dy, y, relu, sum_dy, sum_dy_xmu, count, dx, dresidual);
    });
  }

  void check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments, const Tensor& flags,
                    const Tensor& sum_of_squares) override {
    run([grad = on_host(grad), base, segments = std::vector(segments.begin(), segments.end()), flags = on_host(flags),
         sum_of_squares = on_host(sum_of_squares)](Backend& cpu) mutable {
      cpu.check_finite(grad, base, segments, flags, sum_of_squares);
    });
  }

  void rescale(const Tensor& in, const float* factor, float limit, std::int64_t base,
               std::span<const ArenaSegment> segments, const Tensor& out, const Tensor& flags) override {
    run([in = on_host(in), factor, limit, base, segments = std::vector(segments.begin(), segments.end()),
         out = on_host(out),
         flags = on_host(flags)](Backend& cpu) mutable { cpu.rescale(in, factor, limit, base, segments, out, flags); });
  }

  void sgd_step(const ArenaSlice& slice, const SgdOptions& options, const StepScalars& scalars,
                const Tensor& momentum) override {
    run([slice = Slice(slice), options, scalars, momentum = on_host(momentum)](Backend& cpu) mutable {
      cpu.sgd_step(slice.get(), options, scalars, momentum);
    });
  }

  void adam_step(const ArenaSlice& slice, const AdamOptions& options, const StepScalars& scalars, const Tensor& m,
                 const Tensor& v) override {
    run([slice = Slice(slice), options, scalars, m = on_host(m), v = on_host(v)](Backend& cpu) mutable {
      cpu.adam_step(slice.get(), options, scalars, m, v);
    });
  }

  void cast_ballot(const Tensor& reduced, const Tensor& local, int rank, int world_size,
                   const Tensor& ballot) override {
    run([reduced = on_host(reduced), local = on_host(local), rank, world_size, ballot = on_host(ballot)](
            Backend& cpu) mutable { cpu.cast_ballot(reduced, local, rank, world_size, ballot); });
  }

  void count_ballot(const Tensor& ballot, int world_size, StepVerdict* verdict) override {
    run([ballot = on_host(ballot), world_size, verdict](Backend& cpu) mutable {
      cpu.count_ballot(ballot, world_size, verdict);
    });
  }

  void clip_factor(const Tensor& squares, const float* inverse_scale, double clip_norm, float* norm,
                   float* factor) override {
    run([squares = on_host(squares), inverse_scale, clip_norm, norm, factor](Backend& cpu) mutable {
      cpu.clip_factor(squares, inverse_scale, clip_norm, norm, factor);
    });
  }

  void update_loss_scale(const LossScaleOptions& options, const float* found_inf, LossScaleState* state) override {
    run([options, found_inf, state](Backend& cpu) mutable { cpu.update_loss_scale(options, found_inf, state); });
  }

  void advance_schedule(const float* found_inf, const Tensor& rates, const Tensor& has_gradient, const Tensor& steps,
                        ScheduleState* state) override {
    run([found_inf, rates = on_host(rates), has_gradient = on_host(has_gradient), steps = on_host(steps),
         state](Backend& cpu) mutable { cpu.advance_schedule(found_inf, rates, has_gradient, steps, state); });
  }

 private:
  template <class Work>
  void run(Work work) {
    gpu::emulation::append(gpu::current_stream(device_), [work = std::move(work)]() mutable { work(cpu_backend()); });
  }

  Device device_;
};

}  // namespace

Backend& cuda_backend(Device device) {
  static EmulatedBackend instance(device);  // there is one device
  return instance;
}

void set_tf32(bool) {}

std::string cudnn_version() { return "emulated"; }
std::string cublas_version() { return "emulated"; }

}  // namespace lockstep::kernels
