// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/option_lines.h"
#include "runtime/nn/arena.h"
#include "runtime/optim/optimizer_options.h"
#include "runtime/optim/parameter_groups.h"
#include "runtime/optim/types.h"
#include "runtime/tensor/device_value.h"

namespace lockstep::optim {

/// Updates parameters that lie in arenas, fused: one pass a model that unscales, clips, updates masters and state and
/// rounds the compute copies. A step that is not accepted changes nothing: weights, state, step count and learning
/// rate. It may have the parameters of several models, or some of a model's, the others of which are another
/// optimizer's or stay as they are. A parameter without a gradient in the step, or that requires none, is left alone:
/// by weight decay, by momentum, and in its count of steps, by which biases are corrected and momentum knows where
/// it begins. As PyTorch does where grad is None.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// A number that no other optimizer of this process ever has. The address of an optimizer may be reused.
  std::uint64_t id() const { return id_; }
  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  /// Whether a group asks that the batch norm with this weight keeps its running statistics.
  bool freezes_statistics_of(const Tensor& weight) const;
  /// The rule's name in a job: "sgd", "adamw".
  virtual std::string name() const = 0;
  /// The names of the tensors that attach() makes beside the masters, a float32 an element each: those of state().
  virtual std::vector<std::string> state_names() const = 0;
  /// The names of the tensors of a float32 a parameter: those of parameter_state().
  virtual std::vector<std::string> parameter_state_names() const { return {}; }
  /// The exact bytes of both kinds of state for an arena of so many elements, arena_elements(), and parameters.
  std::size_t state_bytes(std::int64_t elements, std::int64_t parameters) const;

  /// Binds the optimizer to the arenas that hold its parameters; amp::initialize does it. Throws UsageError for a
  /// parameter that none of them holds, and where they lie on several devices.
  void attach(const std::vector<std::shared_ptr<nn::Arena>>& arenas);
  void attach(std::shared_ptr<nn::Arena> arena) { attach(std::vector{std::move(arena)}); }
  /// The arena that holds its parameters. Throws UsageError before attach(), and where there are several.
  nn::Arena& arena() const;
  /// All arenas that hold one of its parameters. Throws UsageError before attach().
  std::vector<nn::Arena*> arenas() const;
  /// Where its parameters lie. Throws UsageError before attach().
  Device device() const;

  /// One of its parameters: slots()[i] is the one whose flags and counts are number i.
  struct Slot {
    nn::Arena* arena = nullptr;
    std::size_t number = 0;  ///< in the arena's slots()
    std::int64_t begin = 0;  ///< its elements in each tensor of state()
    std::int64_t end = 0;
    const nn::Parameter& parameter() const { return arena->slots()[number].parameter; }
  };
  /// The optimizer's parameters by arena, and within one in the arena's order.
  const std::vector<Slot>& slots() const { return slots_; }

  /// Forgets the gradients of its parameters.
  void zero_grad();

  /// The rate of all steps from now on. Throws UsageError unless it is a finite number >= 0, as the next.
  void set_learning_rate(double lr) { set_learning_rates({static_cast<float>(lr)}); }
  /// The rate of each step by the number of applied steps before it; the last one holds from there on. Which one comes
  /// next is decided on the device, as skipped steps do not count.
  void set_learning_rates(const std::vector<float>& rates);
  /// The rates that set_learning_rates() was given, on the device: float32. Other memory where their number changes, so
  /// that work that was captured before is captured anew.
  const Tensor& device_learning_rates() const { return device_rates_; }
  /// The step that comes next, on the device; defined after attach().
  const DeviceValue<ScheduleState>& schedule() const { return schedule_; }
  /// By parameter, in the order of slots(), how many steps were applied to it: int64 [parameters] on the device;
  /// restored by writing into it.
  const Tensor& parameter_steps() const { return parameter_steps_; }
  // Each of these waits for a GPU.
  double learning_rate() const;
  std::int64_t applied_steps() const;
  /// Sets the schedule's count alone, not the counts of the parameters: parameter_steps().
  void set_applied_steps(std::int64_t steps);

  /// Whether a backward pass has given one of its parameters a gradient since the last step or zero_grad().
  bool has_new_gradients() const;
  /// Throws UsageError that names `operation` where a gradient was not reduced over the ranks that train its model: no
  /// backward pass outside no_sync() has followed those inside it. Such a step would make the ranks' weights differ.
  void require_reduced(const std::string& operation) const;
  /// How parameters are stepped beside the schedule: a line an option, and one a parameter, whether it is frozen, its
  /// factor of the rate and its weight decay. Every rank must have the same.
  std::string parameter_rules() const;
  /// A hash of that, of numbers instead of words: for each step.
  std::uint64_t parameter_rules_hash() const;
  /// Looks for inf and NaN in the gradients: flags float32 [parameters], 1 where there is one, in the order of slots().
  /// A parameter without a gradient is not flagged. Also measures what clipping by global norm needs.
  const Tensor& check_gradients();
  /// nn::Arena::local_flags() of its parameters, in the order of slots(); undefined where somewhere nobody looked.
  Tensor local_flags() const;
  /// Accepts the pending batch-norm statistics of its models, or forgets them where *found_inf (on the device) is not
  /// 0.
  void commit_statistics(const float* found_inf) const;
  /// The update alone, with gradients multiplied by *inverse_scale first; nothing happens where *found_inf != 0. Both
  /// are device memory; a null inverse_scale is 1. Call check_gradients() before when clipping by norm. Pending
  /// batch-norm statistics are left to whoever has given the verdict: commit_statistics().
  void step(const float* inverse_scale, const float* found_inf);
  /// Takes the two numbers from the host.
  void step(float inverse_scale, float found_inf);
  /// The step without a GradScaler: it takes gradients as they are. Accepts pending batch-norm statistics. Where a
  /// gradient is not finite nothing happens, and the statistics are forgotten. Such steps are counted, and the first is
  /// said in the log: on the CPU at once, on a GPU by skipped_steps(). Throws UsageError where a gradient is known to
  /// be multiplied by a GradScaler's scale, and as require_reduced() does.
  DeviceValue<StepVerdict> step();
  /// How many calls of step() were skipped since attach(); counts to 2^24. Waits for a GPU.
  std::int64_t skipped_steps() const;

  /// The global norm of the unscaled gradients of the last step, where clipping by norm measures it, else 0. Waits for
  /// a GPU.
  double gradient_norm() const;
  /// The norm on the device: float32 [1]; undefined where nothing measures it.
  Tensor device_gradient_norm() const { return squares_.defined() ? norm_.rows(0, 1) : Tensor(); }

  /// Flat float32 tensors beside the masters, by name, in which slots() says where each parameter's elements are;
  /// restored by writing into them.
  std::vector<std::pair<std::string, Tensor>> state() const { return state_; }
  /// float32 tensors [parameters], in the order of slots(), by name; restored by writing into them.
  std::vector<std::pair<std::string, Tensor>> parameter_state() const { return parameter_state_; }

  /// Multiplies the gradients of its parameters by *inverse_scale (device memory) for code that wants to see them
  /// before step(); where they are of 16 bits, all of the model's are float32 from then on
  /// (nn::Arena::float32_grads()). Returns check_gradients()' flags of the result.
  const Tensor& unscale_gradients(const float* inverse_scale);

 protected:
  // For the constructors of rules.
  /// `rule` has an lr, and the weight_decay of weights that no group names. Throws FieldError for an option out of
  /// range and for a group that matches no parameter; UsageError for an empty list of parameters, and for one that
  /// stands there twice.
  template <Described Rule>
  Optimizer(std::vector<nn::Parameter> parameters, const Rule& rule, const OptimizerOptions& options)
      : Optimizer(std::move(parameters), checked(rule, "optimizer." + std::string(Rule::kKind)).lr, rule.weight_decay,
                  options, lines_of(rule)) {}
  /// Limits the norm of all gradients, clip_norm or not; the smaller of the two holds.
  void limit_norm(const NormLimit& limit);
  /// From now on each parameter that adapts has a rate of its own, which `rule` computes: see adapts().
  void adapt_layers(const LayerRateRule& rule) { layer_rule_ = rule; }
  /// Whether a parameter's norms change its rate where no group says so.
  virtual bool adapts(const nn::Parameter&, float /*weight_decay*/) const { return true; }

  virtual void allocate_state() = 0;
  /// State that starts at `value`.
  Tensor add_state(const std::string& name, double value = 0.0);
  Tensor add_parameter_state(const std::string& name);
  /// Called for each arena, with the slice of it that holds the optimizer's parameters.
  virtual void update(const ArenaSlice& slice, const StepScalars& scalars) = 0;
  /// Within update(): the part of a tensor of state() that belongs to the slice, as long as its master. Undefined where
  /// `state` is.
  Tensor in_slice(const Tensor& state) const;

 private:
  Optimizer(std::vector<nn::Parameter> parameters, double lr, double weight_decay, const OptimizerOptions& options,
            const std::string& rule);

  /// The optimizer's parameters in one arena: slots [first, last).
  struct Part {
    std::shared_ptr<nn::Arena> arena;
    std::int64_t first = 0;
    std::int64_t last = 0;
    bool whole = false;      ///< the arena holds no others
    std::int64_t begin = 0;  ///< elements [begin, end) of the arena, from its first parameter to its last
    std::int64_t end = 0;
    std::int64_t state_begin = 0;        ///< where they begin in the state's tensors
    std::vector<ArenaSegment> segments;  ///< a parameter each
  };

  void add_part(const std::shared_ptr<nn::Arena>& arena, std::vector<bool>& held);
  const std::vector<Part>& parts() const;
  /// The numbers of a part's parameters in their arena.
  std::vector<std::size_t> numbers_in(const Part& part) const;
  /// The numbers of the optimizer's parameters, of those that `of` gives for all slots of an arena, float32 [slots].
  Tensor gather(const std::function<Tensor(const nn::Arena&)>& of) const;
  /// The segments of parameters that require a gradient, with masters of the compute dtype or of float32.
  std::vector<ArenaSegment> segments_to_update(const Part& part, bool rounded) const;
  void say_skipped(std::int64_t steps) const;

  std::uint64_t id_;
  std::string options_;  ///< a line each
  std::uint64_t options_hash_;
  std::vector<nn::Parameter> parameters_;
  std::vector<ParameterOptions> per_parameter_;
  std::optional<NormLimit> norm_limit_;
  std::optional<double> clip_value_;
  std::optional<LayerRateRule> layer_rule_;
  std::vector<float> rates_;
  Tensor device_rates_;  ///< float32, rates_ on the device
  DeviceValue<ScheduleState> schedule_;
  Tensor parameter_steps_;
  std::vector<Part> parts_;
  std::vector<Slot> slots_;
  std::int64_t state_size_ = 0;
  const Part* updated_ = nullptr;  ///< the one that update() is called for
  std::vector<std::pair<std::string, Tensor>> state_;
  std::vector<std::pair<std::string, Tensor>> parameter_state_;
  Tensor layer_rates_;  ///< float32 [parameters, 2]: LayerRate
  Tensor skipped_;      ///< float32 [1]: calls of step() that were skipped, exact up to 2^24
  mutable bool said_skipped_ = false;
  Tensor flags_;
  Tensor squares_;
  Tensor norm_;  ///< float32 [3]: the gradients' norm, the factor that clips it, and 1
};

}  // namespace lockstep::optim
