// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/nn/module_hooks.h"
#include "runtime/nn/parameter.h"
#include "runtime/nn/running_statistics.h"
#include "runtime/ops/types.h"

namespace lockstep::nn {

class Arena;
class Module;

/// Seeds the first values of modules, as PyTorch's function of that name: the same calls behind it, in the same order,
/// make modules of the same values, on every rank. Without it the seed is 0.
void manual_seed(std::uint64_t seed);
/// Draws the parameters anew from their initializers, and names the random numbers that modules draw in their forward
/// passes (name_layers() included). Each element's value depends on the seed, the parameter's name and the element's
/// index alone: not on what was made before, as it does without this call.
void initialize(Module& root, std::uint64_t seed);
/// Gives each module below `root` the number, made from its path, that tells its random numbers from the others'.
void name_layers(Module& root);

/// While it lives, modules that this thread builds get parameters that have shapes and no values, so that their memory
/// is not touched: for looking at a model without paying for it, or before initialize() or a loaded state gives it
/// values. A model with more than an OutlineTally counts throws ModelTooLarge.
class [[nodiscard]] WithoutValues {
 public:
  [[nodiscard]] WithoutValues();
  ~WithoutValues();
  WithoutValues(const WithoutValues&) = delete;
  WithoutValues& operator=(const WithoutValues&) = delete;

 private:
  bool outer_;
};

/// A part of a network: parameters, statistics, and other modules by name. Owns them; not copyable. Its parameters have
/// values from the beginning, PyTorch's distributions drawn by manual_seed()'s seed and the order in which modules are
/// made.
class Module {
 public:
  Module();
  virtual ~Module() = default;
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  virtual Tensor forward(const Tensor& x) = 0;
  /// The forward pass of a module that may take several inputs. Throws UsageError for another number than it takes:
  /// one, but for a MultiInputModule.
  Tensor forward(std::span<const Tensor> inputs) { return forward_all(inputs); }

  /// forward() of a module that is a part of another, or of the whole: within its LayerScope and with its hooks.
  /// forward() itself calls none.
  Tensor operator()(const Tensor& x) { return (*this)(std::span<const Tensor>(&x, 1)); }
  Tensor operator()(std::span<const Tensor> inputs);
  /// The same for a forward pass that takes more than its input: `run`.
  Tensor call(const Tensor& x, const std::function<Tensor(const Tensor& x)>& run);

  /// From now on `hook` is called with each forward pass of operator(); see module_hooks.h. The module outlives the
  /// graphs of its passes where it has backward hooks. A CUDA graph of a step holds what hooks gave the device to do
  /// when it was captured, and calls none.
  HookHandle register_forward_pre_hook(ForwardPreHook hook);
  HookHandle register_forward_hook(ForwardHook hook);
  HookHandle register_full_backward_hook(BackwardHook hook);

  /// This module's and its children's parameters, in the order of registration, named by their path. A shared one
  /// comes once, under the first of its names.
  std::vector<Parameter> parameters() const;
  /// Running statistics by path.
  std::vector<std::pair<std::string, RunningStatistics*>> statistics();

  /// Rounds all parameters to `dtype`, in place: they are what the model is from then on, and no float32 master weights
  /// are kept, so float_() after half() brings no bit back. Gradients collected so far follow. Running statistics stay
  /// float32, as at every opt level. For deploying a model: nn::forward() has the input follow. Training in 16 bits is
  /// amp::initialize's, which keeps masters; UsageError where it holds the parameters already, in another dtype, and
  /// for a `dtype` that is not floating.
  Module& to(DType dtype);
  Module& half() { return to(DType::kFloat16); }
  Module& bfloat16() { return to(DType::kBFloat16); }
  Module& float_() { return to(DType::kFloat32); }
  /// Moves parameters, their gradients and the running statistics. UsageError as above.
  Module& to(Device device);
  /// The dtype of the first parameter; float32 where there is none.
  DType dtype() const;

  /// Accepts the running statistics that training forward passes have left pending: for a loop without an optimizer's
  /// step, as one that estimates them anew under NoGrad. A step calls it with its verdict.
  void commit_statistics();

  /// Switches dropout and batch norm between training and evaluation.
  void train(bool training = true);
  bool training() const { return training_; }
  /// Whether the next forward pass of this module itself, not of its children, draws random numbers that depend on the
  /// place of its input in the global batch.
  virtual bool draws_random_numbers() const { return false; }
  /// How often this module and each below it, in the order of for_each(), have drawn random numbers outside a
  /// StepContext since they were made, or since initialize().
  std::vector<std::uint64_t> random_calls();
  void set_random_calls(std::span<const std::uint64_t> calls);

  /// Replaces the initializers of the parameters from this module down: `choose` is given each with its path.
  /// Parameters whose initializer it changes are drawn anew.
  void choose_initializers(const std::function<Initializer(const Parameter& parameter)>& choose);

  /// Calls `visit` for this module ("" is its path) and, depth first, for all below it.
  void for_each(const std::function<void(const std::string& path, Module& module)>& visit);

  /// The arena that holds the parameters once amp::initialize made it; on the root only.
  const std::shared_ptr<Arena>& arena() const { return arena_; }
  void set_arena(std::shared_ptr<Arena> arena) { arena_ = std::move(arena); }

 protected:
  virtual Tensor forward_all(std::span<const Tensor> inputs);
  /// Throws UsageError where a forward pass that takes `expected` inputs is given `given`.
  static void require_inputs(std::size_t given, std::size_t expected);

  /// Names the next random numbers of this module's forward pass: by the StepContext where there is one, otherwise by
  /// the number of the call. The rows' place in the global batch comes beside it: StepContext::current().
  ops::DropoutKey next_random_key();

  /// A float32 leaf that requires a gradient, with values that `initializer` names; see WithoutValues.
  Tensor add_parameter(std::string name, const Shape& shape, ParameterKind kind, Initializer initializer);
  /// Registers another module's parameter here too (tied weights): both modules read one tensor, whose gradient is the
  /// sum of what arrives from both.
  Tensor share_parameter(std::string name, const Parameter& parameter);
  RunningStatistics& add_statistics(std::string name, std::int64_t channels);
  template <class M, class... Args>
  M& add_module(std::string name, Args&&... args) {
    auto module = std::make_unique<M>(std::forward<Args>(args)...);
    M& added = *module;
    adopt(std::move(name), std::move(module));
    return added;
  }
  void adopt(std::string name, std::unique_ptr<Module> module);

 private:
  const Tensor* first_parameter() const;
  /// The parameters() that are not `what` yet. Throws UsageError for one in an arena.
  std::vector<Parameter> to_replace(const std::function<bool(const Tensor&)>& is_done, const std::string& what) const;
  void walk(const std::string& prefix, const std::function<void(const std::string&, Module&)>& visit);

  std::vector<Parameter> parameters_;
  std::vector<std::pair<std::string, std::unique_ptr<RunningStatistics>>> statistics_;
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> children_;
  friend void initialize(Module& root, std::uint64_t seed);
  friend void name_layers(Module& root);

  /// The key of the random numbers of this module's forward pass.
  struct RandomName {
    std::uint64_t seed = 0;
    std::uint32_t layer = 0;
    std::uint64_t calls = 0;
  };

  ModuleHooks& hooks();

  std::unique_ptr<ModuleHooks> hooks_;  ///< null where none was ever registered
  bool training_ = true;
  RandomName random_name_;
  std::shared_ptr<Arena> arena_;
};

}  // namespace lockstep::nn
