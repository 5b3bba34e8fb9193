// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "amp/grad_scaler/agreement.h"
#include "comm/group/communicator.h"
#include "configs/checkpoint.pb.h"
#include "configs/job.pb.h"
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
/// Static scaling (dynamic: false) leaves the scale alone, but gradients are checked and steps skipped all the same.
class GradScaler {
 public:
  /// `config` as resolved. Throws UsageError for factors out of range.
  GradScaler(const job::LossScale& config, std::shared_ptr<comm::Communicator> communicator);
  GradScaler(const job::LossScale& config, const comm::World& world) : GradScaler(config, world.communicator()) {}

  /// loss * scale, as part of the graph; float32 for a 16-bit loss.
  Tensor scale(const Tensor& loss);

  /// This rank's own gradients were seen before they were reduced: flags float32 [parameters]. Lets the verdict name
  /// the rank. DistributedDataParallel's local_flags().
  void note_local_flags(const optim::Optimizer& optimizer, const Tensor& flags);

  /// Divides the optimizer's gradients by the scale now, so that they can be looked at. Throws UsageError when it was
  /// already called since the last update(), after step(), before any scale(), or for 16-bit gradients.
  void unscale_(optim::Optimizer& optimizer);
  /// Agrees on the verdict and applies or skips the optimizer's step. Throws UsageError when called twice before
  /// update().
  Verdict step(optim::Optimizer& optimizer);
  /// Adapts the scale and counts skips; those of several optimizers since the last update count as one. Throws
  /// UsageError when no optimizer was checked since then, or before any scale(). Throws NumericsError, on every rank,
  /// after max_consecutive_skips skips in a row, naming parameter and rank.
  void update();

  float current_scale() const { return scale_.as<float>()[0]; }
  std::uint32_t growth_tracker() const { return state_.growth_tracker(); }
  std::uint32_t consecutive_skips() const { return state_.consecutive_skips(); }
  bool dynamic() const { return dynamic_; }

  checkpoint::ScalerState state_dict() const;
  /// Takes over growth tracker, skip counts and, where it is dynamic, the scale, within min and max; what the job says
  /// stays as this scaler's job says it. Throws UsageError when given a disabled scaler's empty state.
  void load_state_dict(const checkpoint::ScalerState& state);

 private:
  enum class Stage { kReady, kUnscaled, kStepped };
  struct PerOptimizer {
    Stage stage = Stage::kReady;
    Verdict verdict;
    Tensor local_flags;
  };

  /// Computed in double, as PyTorch does.
  float inverse_scale() const { return static_cast<float>(1.0 / static_cast<double>(current_scale())); }
  Verdict check(optim::Optimizer& optimizer, PerOptimizer& record);
  void require_scaled(const char* operation) const;
  void adapt_scale(bool found_inf);
  [[noreturn]] void give_up(const std::string& parameter, int rank) const;

  bool dynamic_;
  double min_;
  double max_;
  std::uint32_t max_consecutive_skips_;
  std::shared_ptr<comm::Communicator> communicator_;
  checkpoint::ScalerState state_;
  Tensor scale_;  ///< float32 scalar on the device
  bool scaled_ = false;
  std::map<const optim::Optimizer*, PerOptimizer> optimizers_;
};

}  // namespace lockstep::amp
