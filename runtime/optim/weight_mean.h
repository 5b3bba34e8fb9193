// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/field_checks.h"
#include "runtime/base/option_fields.h"
#include "runtime/nn/arena.h"
#include "runtime/optim/optimizer.h"

namespace lockstep::optim {

struct WeightMeanOptions {
  double decay = 0.999;  ///< of the mean that is kept at each step; in [0, 1)
  /// The decay is at most (1 + n) / (warmup + n) at the n-th applied step, counted from 1; 0: no warm-up.
  std::uint32_t warmup = 0;

  static constexpr auto fields() {
    return std::tuple(option("decay", &WeightMeanOptions::decay, kFraction),
                      option("warmup", &WeightMeanOptions::warmup));
  }
  bool operator==(const WeightMeanOptions&) const = default;
};

/// The problems for which WeightMean refuses the options, by field.
FieldProblems problems_of(const WeightMeanOptions& options);

/// An exponential moving average of a model's weights, in float32 beside the masters: mean = decay * mean + (1 - decay)
/// * weights after each applied step, as torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(decay) computes
/// it. (Polyak, Juditsky: "Acceleration of Stochastic Approximation by Averaging", 1992.) A skipped step changes
/// nothing. Running statistics of batch norms are the model's own: they are a mean already.
///
///   optim::WeightMean mean(*optimizer, {.decay = 0.999});
///   ...
///   mean.update(scaler.step(*optimizer));
///   ...
///   const optim::WeightMean::InPlace evaluated(mean);
///
/// Ranks that hold the same weights hold the same mean. 4 bytes a parameter.
class WeightMean {
 public:
  /// The mean of the weights of the optimizer's model, which begins as they are now: make it behind
  /// DistributedDataParallel, which gives every rank those of rank 0, or call restart(). The optimizer outlives this.
  /// Throws FieldError for an option out of range, and UsageError where the optimizer has parameters of several models,
  /// and before amp::initialize.
  explicit WeightMean(Optimizer& optimizer, const WeightMeanOptions& options = {});
  WeightMean(const WeightMean&) = delete;
  WeightMean& operator=(const WeightMean&) = delete;

  nn::Arena& arena() const { return arena_; }
  /// Moves the mean towards the weights. Called behind the optimizer's step with its verdict, which GradScaler::step()
  /// and Optimizer::step() return. Appended to the device's current stream; may be captured.
  void update(const DeviceValue<StepVerdict>& verdict);
  /// The mean begins again as the weights are: behind weights that were loaded.
  void restart();

  /// float32, flat, with the arena's offsets; restored by writing into it.
  const Tensor& values() const { return mean_; }
  /// The mean of one parameter, in its shape.
  Tensor of(const nn::Arena::Slot& slot) const;

  /// While it lives, the mean stands in the place of the model's weights, and they aside: for an evaluation or an
  /// export. Then the weights come back, bit for bit. Meanwhile neither is trained. Takes 4 bytes a parameter.
  class [[nodiscard]] InPlace {
   public:
    [[nodiscard]] explicit InPlace(const WeightMean& mean);
    ~InPlace();
    InPlace(const InPlace&) = delete;
    InPlace& operator=(const InPlace&) = delete;

   private:
    const nn::Arena& arena_;
    Tensor weights_;
  };

 private:
  nn::Arena& arena_;
  const DeviceValue<ScheduleState> schedule_;  ///< the optimizer's: how many steps were applied
  MeanRule rule_;
  Tensor mean_;
};

}  // namespace lockstep::optim
