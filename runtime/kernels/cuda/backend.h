// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "runtime/kernels/cuda_backend.h"

namespace lockstep::kernels {

namespace cuda {
class SegmentTables;
class MatmulPlans;
struct MatmulData;
struct MatmulProblem;
class ConvPlans;
}  // namespace cuda

/// One GPU: cuBLASLt for matrix products, cuDNN for convolution, own memory-bound kernels for the rest, one source file
/// a family. Floating dtypes are float32, float16 and bfloat16; float64 is refused, as the oracle runs on the CPU. A
/// target that is no class makes the loss NaN: nobody waits for the device to hear of it.
class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(Device device);
  ~CudaBackend() override;

  std::string_view name() const override;

  // Elementwise
  void fill(const Tensor& out, double value) override;
  void cast(const Tensor& in, const Tensor& out) override;
  void copy_unless(const float* rejected, const Tensor& in, const Tensor& out) override;
  void accumulate(const Tensor& in, const Tensor& out) override;
  void add(const Tensor& a, const Tensor& b, const Tensor& out) override;
  void multiply(const Tensor& a, const Tensor& b, const Tensor& out) override;
  void scale(const Tensor& in, double factor, const float* device_factor, const Tensor& out) override;
  void activate(Activation activation, const Tensor& x, const Tensor& y) override;
  void activate_backward(Activation activation, const Tensor& x, const Tensor& dy, const Tensor& dx) override;
  void dropout(const Tensor& x, double p, const DropoutKey& key, std::int64_t first_element, const Tensor& y) override;

  // Reductions
  void sum(const Tensor& x, double factor, const Tensor& out) override;
  void sum_rows(const Tensor& x, bool accumulate, const Tensor& out) override;

  // Matrix products
  void matmul(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b, const Epilogue& epilogue,
              bool accumulate, const Tensor& out) override;

  // Convolution: x [N, spatial..., C], weight [O, kernel..., C / groups], y [N, spatial'..., O]
  void conv_forward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& bias,
                    const Tensor& y) override;
  void conv_backward(const ConvGeometry& geometry, const Tensor& x, const Tensor& weight, const Tensor& dy,
                     const Tensor& dx, const Tensor& dweight, const Tensor& dbias, bool accumulate) override;

  // Pooling: x [N, spatial..., C]
  void pool_forward(const PoolGeometry& geometry, const Tensor& x, const Tensor& y, const Tensor& indices) override;
  void pool_backward(const PoolGeometry& geometry, const Tensor& dy, const Tensor& indices, const Tensor& dx) override;
  void global_average_pool(const Tensor& x, const Tensor& y) override;
  void global_average_pool_backward(const Tensor& dy, const Tensor& dx) override;

  // Softmax and losses over the last dimension
  void softmax(const Tensor& x, bool log, const Tensor& y) override;
  void softmax_backward(const Tensor& y, bool log, const Tensor& dy, const Tensor& dx) override;
  void cross_entropy(const Tensor& logits, const Tensor& targets, double label_smoothing, double weight,
                     const Tensor& loss, const Tensor& log_sum_exp) override;
  void cross_entropy_backward(const Tensor& logits, const Tensor& targets, double label_smoothing, double weight,
                              const Tensor& log_sum_exp, const Tensor& dloss, const Tensor& dlogits) override;
  void mse(const Tensor& x, const Tensor& target, double weight, const Tensor& loss) override;
  void mse_backward(const Tensor& x, const Tensor& target, double weight, const Tensor& dloss,
                    const Tensor& dx) override;

  // Batch normalisation over channels. Statistics and parameters are float32 [C] (float64 for float64 x)
  void batch_norm_statistics(const Tensor& x, const Tensor& mean, const Tensor& m2) override;
  void batch_norm_finalize(const Tensor& packed, double epsilon, double momentum, const Tensor& running,
                           const Tensor& mean, const Tensor& inv_std, const Tensor& count,
                           const Tensor& next_running) override;
  void batch_norm_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                        const Tensor& beta, const Tensor& residual, bool relu, const Tensor& y) override;
  void batch_norm_backward_reduce(const Tensor& x, const Tensor& mean, const Tensor& dy, const Tensor& y, bool relu,
                                  const Tensor& sum_dy, const Tensor& sum_dy_xmu) override;
  void batch_norm_backward_apply(const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& gamma,
                                 const Tensor& dy, const Tensor& y, bool relu, const Tensor& sum_dy,
                                 const Tensor& sum_dy_xmu, const Tensor& count, const Tensor& dx,
                                 const Tensor& dresidual) override;

  // The arena
  void check_finite(const Tensor& grad, std::int64_t base, std::span<const ArenaSegment> segments, const Tensor& flags,
                    const Tensor& sum_of_squares) override;
  void rescale(const Tensor& in, const float* factor, float limit, std::int64_t base,
               std::span<const ArenaSegment> segments, const Tensor& out, const Tensor& flags) override;
  void sgd_step(const ArenaSlice& slice, const SgdOptions& options, const StepScalars& scalars,
                const Tensor& momentum) override;
  void adam_step(const ArenaSlice& slice, const AdamOptions& options, const StepScalars& scalars, const Tensor& m,
                 const Tensor& v) override;

  // A step's decisions
  void cast_ballot(const Tensor& reduced, const Tensor& local, int rank, int world_size, const Tensor& ballot) override;
  void count_ballot(const Tensor& ballot, int world_size, StepVerdict* verdict) override;
  void clip_factor(const Tensor& squares, const float* inverse_scale, double clip_norm, float* norm,
                   float* factor) override;
  void update_loss_scale(const LossScaleOptions& options, const float* found_inf, LossScaleState* state) override;
  void advance_schedule(const float* found_inf, const Tensor& rates, const Tensor& has_gradient, const Tensor& steps,
                        ScheduleState* state) override;

 private:
  void multiply(const cuda::MatmulProblem& problem, const cuda::MatmulData& data, const Tensor& bias,
                const Tensor& out);

  Device device_;
  std::unique_ptr<cuda::SegmentTables> segments_;
  std::unique_ptr<cuda::MatmulPlans> matmuls_;
  std::unique_ptr<cuda::ConvPlans> convolutions_;
};

}  // namespace lockstep::kernels
