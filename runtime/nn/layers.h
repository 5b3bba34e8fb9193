// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/nn/module.h"
#include "runtime/ops/batch_norm.h"
#include "runtime/ops/types.h"

namespace lockstep::nn {

/// activation(x [..., in] weight^T + bias) -> [..., out], in one operation; weight [out, in], bias [out]. PyTorch's
/// initialisation: uniform within 1 / sqrt(in).
class Linear : public Module {
 public:
  Linear(std::int64_t in, std::int64_t out, bool bias = true, ops::Activation activation = ops::Activation::kNone);
  /// Shares another module's weight [out, in], one of its parameters(): tied weights. Throws ShapeError where it is no
  /// matrix.
  explicit Linear(const Parameter& weight, bool bias = true, ops::Activation activation = ops::Activation::kNone);
  Tensor forward(const Tensor& x) override;

 private:
  void add_bias();

  Tensor weight_;
  Tensor bias_;
  ops::Activation activation_;
};

struct ConvOptions {
  ops::ConvGeometry geometry;
  std::int64_t kernel = 3;  ///< along every spatial dimension
  bool bias = true;
  /// Normal with variance 2 / (out * kernel^d), as residual networks start; otherwise PyTorch's default.
  bool kaiming_normal = false;
};

/// x [N, spatial..., in] -> [N, spatial'..., out]; weight [out, kernel..., in / groups], bias [out]. Throws ShapeError
/// unless groups divide the channels.
class Conv : public Module {
 public:
  Conv(std::int64_t in, std::int64_t out, const ConvOptions& options);
  Tensor forward(const Tensor& x) override;

 private:
  ops::ConvGeometry geometry_;
  Tensor weight_;
  Tensor bias_;
};

/// x [N, spatial..., in] -> [N, spatial'..., out]; weight [in, kernel..., out / groups], bias [out]. PyTorch's
/// ConvTranspose1d to 3d, its initialisation included, which takes `out / groups * kernel^d` for the fan-in.
class ConvTranspose : public Module {
 public:
  ConvTranspose(std::int64_t in, std::int64_t out, const ConvOptions& options,
                const std::array<std::int64_t, 3>& output_padding = {});
  Tensor forward(const Tensor& x) override;

 private:
  ops::ConvGeometry geometry_;
  std::array<std::int64_t, 3> output_padding_;
  Tensor weight_;
  Tensor bias_;
};

struct BatchNormOptions {
  bool relu = false;         ///< max(0, .) in the same pass
  double initial_gamma = 1;  ///< the first value of `weight`
  bool affine = true;        ///< learns `weight` and `bias`; otherwise they are 1 and 0, and no parameters
  double momentum = 0.1;     ///< in [0, 1]: weight of the new statistics in the running ones
  double epsilon = 1e-5;     ///< > 0: added to the variance
};

/// Batch norm over the last dimension, with ReLU and an addition in the same pass where asked for. Throws FieldError
/// for an option out of range.
class BatchNorm : public Module {
 public:
  explicit BatchNorm(std::int64_t channels, const BatchNormOptions& options = {});
  Tensor forward(const Tensor& x) override { return forward(x, {}); }
  /// relu?(norm(x) + residual); residual may be undefined.
  Tensor forward(const Tensor& x, const Tensor& residual);

  /// Takes the statistics over the ranks that `reducer` joins; it outlives the module. Null: over this rank alone.
  void synchronize(ops::StatisticsReducer* reducer) { options_.reducer = reducer; }
  ops::StatisticsReducer* reducer() const { return options_.reducer; }

  /// From now on it normalises by the running statistics in training as in evaluation, and leaves them as they are.
  void freeze_statistics() { frozen_ = true; }

 private:
  /// Where gamma and beta are no parameters: makes them anew on the input's device.
  void place_constants(Device device);

  bool affine_;
  Tensor gamma_;
  Tensor beta_;
  RunningStatistics& running_;
  ops::BatchNormOptions options_;
  bool frozen_ = false;
};

/// Active while training; each call draws a new mask. It is named by the module's path (by the order in
/// which modules were made, before initialize() or DistributedDataParallel names it), the rows' places in the global
/// batch and, within a StepContext, the context and the number of the call in it; otherwise by the seed that
/// initialize(), or before it manual_seed(), was given and the number of the call since then. Every rank calls a layer
/// equally often, also one without samples.
class Dropout : public Module {
 public:
  explicit Dropout(double p) : p_(p) {}
  Tensor forward(const Tensor& x) override;
  bool draws_random_numbers() const override { return training() && p_ > 0; }

 private:
  double p_;
};

class Activation : public Module {
 public:
  explicit Activation(ops::Activation activation) : activation_(activation) {}
  Tensor forward(const Tensor& x) override;

 private:
  ops::Activation activation_;
};

class Pool : public Module {
 public:
  explicit Pool(const ops::PoolGeometry& geometry) : geometry_(geometry) {}
  Tensor forward(const Tensor& x) override;

 private:
  ops::PoolGeometry geometry_;
};

class GlobalAveragePool : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

/// ops::adaptive_average_pool(), or adaptive_max_pool(), to these extents.
class AdaptivePool : public Module {
 public:
  AdaptivePool(ops::PoolKind kind, const Shape& extents) : kind_(kind), extents_(extents) {}
  Tensor forward(const Tensor& x) override;

 private:
  ops::PoolKind kind_;
  Shape extents_;
};

class Flatten : public Module {
 public:
  Tensor forward(const Tensor& x) override;
};

/// One module after the other.
class Sequential : public Module {
 public:
  template <class M, class... Args>
  M& add(std::string name, Args&&... args) {
    M& module = add_module<M>(std::move(name), std::forward<Args>(args)...);
    order_.push_back(&module);
    return module;
  }
  Tensor forward(const Tensor& x) override;

 protected:
  /// One of them.
  virtual Tensor run(Module& module, const Tensor& x) { return module(x); }

 private:
  std::vector<Module*> order_;
};

}  // namespace lockstep::nn
