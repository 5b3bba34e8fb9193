// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace lockstep::kernels {

/// The losses of a number x and its target t that kernels add up over all elements. functors/pair_loss.h lists their
/// formulas.
enum class PairLoss : std::uint8_t {
  kSquare,              ///< (x - t)^2
  kAbsolute,            ///< |x - t|
  kHuber,               ///< (x - t)^2 / 2 where |x - t| <= parameter, else parameter (|x - t| - parameter / 2)
  kKlDivergence,        ///< t (log t - x); -t x where t <= 0
  kKlDivergenceOfLogs,  ///< e^t (t - x)
};

/// A loss of pairs and its parameter.
struct PairLossFunction {
  PairLoss kind = PairLoss::kSquare;
  double parameter = 1;

  constexpr PairLossFunction(PairLoss loss, double loss_parameter = 1) : kind(loss), parameter(loss_parameter) {}
};

/// The member of a pair by which a loss is differentiated.
enum class PairSide : std::uint8_t { kX, kTarget };

}  // namespace lockstep::kernels
