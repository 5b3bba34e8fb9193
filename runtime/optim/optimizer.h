// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "configs/job.pb.h"
#include "runtime/kernels/backend.h"
#include "runtime/nn/arena.h"

namespace lockstep::optim {

/// How one parameter is updated.
struct ParameterOptions {
  float lr_scale = 1.0f;
  float weight_decay = 0.0f;
};

/// What an optimizer does to every parameter alike.
struct OptimizerOptions {
  double lr = 0.0;
  double clip_norm = 0.0;   ///< 0: no clipping by global norm
  double clip_value = 0.0;  ///< 0: no clipping by value
};

/// Updates the arena's parameters, fused: one pass that unscales, clips, updates masters and state and rounds the
/// compute copies. A step that is not accepted changes nothing: weights, state, step count and learning rate.
/// Parameters that do not require a gradient are left alone, by weight decay too.
class Optimizer {
 public:
  Optimizer(std::vector<nn::Parameter> parameters, std::vector<ParameterOptions> per_parameter,
            const OptimizerOptions& options);
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// "sgd", "adam", "adamw"
  virtual std::string name() const = 0;

  /// Binds the optimizer to the arena that holds its parameters; amp::initialize does it. Throws UsageError unless the
  /// arena holds exactly these parameters.
  void attach(std::shared_ptr<nn::Arena> arena);
  /// Throws UsageError before attach().
  nn::Arena& arena() const;

  void zero_grad() { arena().zero_grad(); }

  /// The rate of the next step; a schedule sets it before each.
  void set_learning_rate(double lr) { lr_ = lr; }
  double learning_rate() const { return lr_; }
  std::int64_t applied_steps() const { return applied_steps_; }
  void set_applied_steps(std::int64_t steps) { applied_steps_ = steps; }

  /// Looks for inf and NaN in the gradients: flags float32 [parameters], 1 where there is one, in the arena's order.
  /// A gradient that no backward pass wrote since zero_grad() counts as zero. Also measures what clipping by global
  /// norm needs.
  const Tensor& check_gradients();
  /// The update, with gradients multiplied by inverse_scale first; nothing happens, except that pending batch-norm
  /// statistics are forgotten, where found_inf != 0. Call check_gradients() before when clipping by norm.
  void step(float inverse_scale, float found_inf);
  /// Without a GradScaler: the gradients are what they are.
  void step();

  /// The global norm of the gradients as of check_gradients(), unscaled by inverse_scale.
  double gradient_norm(float inverse_scale) const;

  /// Flat float32 tensors beside the masters, by name; restored by writing into them.
  std::vector<std::pair<std::string, Tensor>> state() const { return state_; }

  /// Divides the arena's gradients by the scale in place, for code that wants to see them before step(). Throws
  /// UsageError for 16-bit gradients, whose small values would be lost.
  void unscale_gradients(float inverse_scale);

 protected:
  virtual void allocate_state() = 0;
  Tensor add_state(const std::string& name);
  virtual void update(const kernels::ArenaSlice& slice, const kernels::StepScalars& scalars) = 0;

 private:
  /// Those of parameters that require a gradient, with masters of the compute dtype or of float32.
  std::vector<kernels::ArenaSegment> segments_to_update(bool rounded) const;

  std::vector<nn::Parameter> parameters_;
  std::vector<ParameterOptions> per_parameter_;
  OptimizerOptions options_;
  double lr_;
  std::int64_t applied_steps_ = 0;
  std::shared_ptr<nn::Arena> arena_;
  std::vector<kernels::ArenaSegment> segments_;
  std::vector<std::pair<std::string, Tensor>> state_;
  Tensor flags_;
  Tensor squares_;
};

/// The optimizer that the resolved job names, for these parameters. Throws UsageError for a group that matches none of
/// them or is no regular expression.
std::unique_ptr<Optimizer> make(const job::Optimizer& config, const std::vector<nn::Parameter>& parameters);

}  // namespace lockstep::optim
