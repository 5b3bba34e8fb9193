// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "amp/grad_scaler/grad_scaler_options.h"
#include "amp/grad_scaler/grad_scaler_state.h"
#include "amp/grad_scaler/verdict.h"
#include "comm/group/world.h"
#include "runtime/optim/optimizer.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::amp {

/// Scales the loss so that 16-bit gradients neither vanish nor overflow, and lets all ranks skip a step together when
/// some gradient is not finite. PyTorch's GradScaler with, in addition, an agreement over ranks, a floor, a ceiling,
/// and a stop after too many skips in a row.
///
/// After each step() of every optimizer, update(): on an overflow scale *= backoff (not below min) and the growth
/// tracker returns to 0; otherwise the tracker counts, and at growth_interval scale *= growth where the product is
/// finite (not above max). The verdict of update() is that of any optimizer since the last one.
///
/// These rules are update_loss_scale() of runtime/kernels/functors/decisions.h, one for CPU and GPU.
///
/// Static scaling (dynamic: false) leaves the scale alone, but gradients are checked and steps skipped all the same.
///
/// One scaler may serve several losses, models and optimizers. The gradients of one optimizer are of one scaler; losses
/// that need scales of their own have optimizers of their own.
///
/// Gradients know what they are multiplied by, where the graph says so: a sum of losses, and a scaled loss times a
/// plain number. Errors are then the step of an optimizer whose gradients this scaler has not scaled, has scaled in
/// part, or with a scale that it no longer has; Optimizer::step() and clipping before they are unscaled. Gradients of
/// whose scale nothing is known, those of a loss that the caller multiplied or of a backward pass with a gradient of
/// the caller's, are taken for scaled ones. A static scale of 1 makes no difference, and none is made.
class GradScaler {
 public:
  /// A collective of several ranks: their verdicts travel on a channel of its own. These are all ranks that train a
  /// model with it. Throws FieldError for an option out of range, and PeerError naming two ranks and the option in
  /// which they differ.
  explicit GradScaler(std::shared_ptr<comm::Communicator> communicator, const GradScalerOptions& options = {});
  explicit GradScaler(const comm::World& world, const GradScalerOptions& options = {})
      : GradScaler(world.communicator(), options) {}

  // Two scalers with one state would agree on nothing.
  GradScaler(const GradScaler&) = delete;
  GradScaler& operator=(const GradScaler&) = delete;

  /// loss * scale, as part of the graph; float32 for a 16-bit loss. `loss` itself where the scaler is disabled. Throws
  /// UsageError where an earlier loss was on another device. Several threads may call it at a time, each for losses of
  /// its own, as step::Replicas does; everything else is for one thread.
  [[nodiscard]] Tensor scale(const Tensor& loss);
  /// scale() of each loss.
  [[nodiscard]] std::vector<Tensor> scale(const std::vector<Tensor>& losses);
  /// scale(loss).backward(): the same gradients, bit by bit. A float32 loss is not multiplied for it: the scale is the
  /// gradient that the backward pass begins with.
  void backward(const Tensor& loss);

  /// Divides the optimizer's gradients by the scale now, so that they can be looked at, and clipped
  /// (optim::clip_grad_norm_). 16-bit gradients become float32, which takes 4 bytes a parameter from the first call on.
  /// Agrees on the verdict. From then on until zero_grad() a backward pass into them is refused: it would add scaled
  /// gradients to unscaled ones. A step that is abandoned behind it is over with zero_grad(): the next one begins anew,
  /// and an overflow lowers the scale only where update() is called before that. Does nothing where the scaler is
  /// disabled. Throws UsageError when it was already called since the last update(), after step(), before any scale(),
  /// and for gradients that this scaler, as it is, has not scaled.
  void unscale_(optim::Optimizer& optimizer);
  /// Agrees on the verdict, applies or skips the optimizer's step and, with it, accepts or forgets the pending
  /// batch-norm statistics of the model. The verdict stays on the device: reading it waits for a GPU. Throws UsageError
  /// when called twice before update(), where no backward pass has given a parameter of the optimizer a gradient since
  /// its last step, for an optimizer on another device, for gradients that this scaler, as it is, has not scaled, for
  /// those of a model that more ranks train than agree here, and for those that backward passes under no_sync() have
  /// left unreduced.
  ///
  /// Ranks also compare, with the verdict, what else they step with: the scaler's state and factors, the optimizer's
  /// learning rate and number of applied steps, frozen parameters, and rates and decays of groups. Where they differ,
  /// the step is skipped on every rank. On the CPU step() and unscale_() then throw what require_same_state() does. On
  /// a GPU the verdict's rank is Verdict::kRanksDiffer, which require_progress() refuses.
  DeviceValue<Verdict> step(optim::Optimizer& optimizer);
  /// Adapts the scale and counts skips; those of several optimizers since the last update count as one. Throws
  /// UsageError when no optimizer was checked since then, or before any scale(); and, on the CPU, what
  /// require_progress() throws. On a GPU that would wait: whoever reads the state later calls it.
  void update();
  /// Makes the scale `new_scale` instead; the growth tracker stays. Without a check since the last update() too. Throws
  /// FieldError for one out of range: > 0, a float32, and where the scale is dynamic within min and max.
  void update(double new_scale);
  /// Makes the scale a number that lies on the scale's device, float32, of one element and without a gradient; nobody
  /// waits for it. The scale stays where that number is not positive and finite, and keeps within min and max where it
  /// is dynamic. Throws UsageError for another tensor.
  void update(const Tensor& new_scale);
  /// update() for a loop that calls require_progress() itself, once it has told of the step.
  /// `report`: written on the device with it, the scale as it then is.
  void adapt(const StepReport& report = {}) { adapt(Tensor(), report); }
  /// Throws NumericsError, on every rank alike, once max_consecutive_skips steps in a row were skipped, and PeerError
  /// where `rank` says that the ranks differ. `state` as it is after update(); parameter and rank are those of the
  /// verdict, for the message.
  void require_progress(const LossScaleState& state, const std::string& parameter, int rank) const;

  /// Throws PeerError on every rank where the state that step() compares differs, naming two ranks and the difference.
  /// Waits for a GPU. A collective.
  void require_same_state(const optim::Optimizer& optimizer) const;
  /// Forgets the inf checks since the last update(): the step that they were of begins anew, with another zero_grad().
  void forget_checks() { optimizers_.clear(); }

  /// The scale and what moves it, on the device; defined once a loss was scaled or a state was loaded.
  const DeviceValue<LossScaleState>& state() const { return state_; }
  // Each of these waits for a GPU.
  float get_scale() const { return now().scale; }  ///< 1 where disabled
  std::uint32_t growth_tracker() const { return static_cast<std::uint32_t>(now().growth_tracker); }
  std::uint32_t consecutive_skips() const { return static_cast<std::uint32_t>(now().consecutive_skips); }
  bool dynamic() const { return options_.enabled && options_.dynamic; }
  bool is_enabled() const { return options_.enabled; }

  double get_growth_factor() const { return options_.growth_factor; }
  double get_backoff_factor() const { return options_.backoff_factor; }
  std::uint32_t get_growth_interval() const { return options_.growth_interval; }
  // From the next update() on, also of a captured step. Each waits for a GPU and throws FieldError for one out of
  // range.
  void set_growth_factor(double factor);
  void set_backoff_factor(double factor);
  void set_growth_interval(std::uint32_t interval);

  /// Empty where the scaler is disabled. to_json() makes PyTorch's fields of it.
  GradScalerState state_dict() const;
  /// Takes over growth tracker, skip counts and, where it is dynamic, the scale, within min and max; what the options
  /// say stays as this scaler's say it. Does nothing where the scaler is disabled. Throws UsageError for an empty
  /// state.
  void load_state_dict(const GradScalerState& state);

 private:
  enum class Stage { kReady, kUnscaled, kStepped };
  struct PerOptimizer {
    std::uint64_t optimizer = 0;  ///< its id(): it may be gone before update()
    std::string bad_parameter;    ///< known on the CPU at once; empty where there is none
    Stage stage = Stage::kReady;
    DeviceValue<Verdict> verdict;
  };

  void set(const GradScalerOptions& options);
  void place(Device device);
  /// `new_scale` on the device; undefined: there is none.
  void adapt(const Tensor& new_scale, const StepReport& report);
  /// `scaled` as the result of an operation in the graph. Gradients that pass through it are known to be this scaler's.
  Tensor marked(const Tensor& scaled) const;
  void finish_update(const Tensor& new_scale);
  /// Above 0 where the gradients of any optimizer were bad; undefined where none was checked since the last update().
  Tensor found_inf() const;
  LossScaleState now() const { return state_.defined() ? state_.read() : initial_; }
  PerOptimizer& record_of(const optim::Optimizer& optimizer);
  void agree_on(const Tensor& flags, const optim::Optimizer& optimizer, PerOptimizer& record);
  void require_device(Device device, const std::string& of) const;
  void require_scaled(const char* operation) const;
  void require_gradients(const char* operation, const optim::Optimizer& optimizer) const;
  void require_own(const char* operation, const optim::Optimizer& optimizer) const;
  /// autograd::ScaleMark of the losses that it scales now.
  std::uint64_t mark() const;

  std::uint64_t id_;                 ///< of this process, never given twice
  std::uint32_t scale_changes_ = 0;  ///< that the host knows of
  GradScalerOptions options_;
  std::shared_ptr<comm::Communicator> communicator_;
  LossScaleState initial_;
  DeviceValue<LossScaleState> state_;   ///< where the losses are
  DeviceValue<LossScaleOptions> rule_;  ///< options_, there
  std::mutex placing_;
  std::atomic<bool> scaled_ = false;
  std::vector<PerOptimizer> optimizers_;  ///< since the last update(), in the order of their first call: every rank's
};

}  // namespace lockstep::amp
