// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "runtime/ops/rotary.h"

namespace lockstep::nn {

/// The angles of rotary positions [0, context), made once and kept where they are used: shared by the layers of a
/// model.
class RotaryPositions {
 public:
  /// `channels`: of a head, even. Throws UsageError as ops::rotary_frequencies().
  RotaryPositions(std::int64_t context, std::int64_t channels, double theta,
                  const std::optional<ops::RotaryScaling>& scaling = {});
  /// x [..., T, channels] of positions first, ..., first + T - 1: ops::rotary. Throws ShapeError beyond the context.
  Tensor apply(const Tensor& x, std::int64_t first);

 private:
  /// The table on the device and in the dtype that x asks for.
  ops::RotaryTable table_for(const Tensor& x);

  std::int64_t context_;
  std::vector<double> frequencies_;
  std::mutex mutex_;        ///< of the table: several threads may run a model
  ops::RotaryTable table_;  ///< as the last x asked for; undefined before the first, so that an outline has none
};

}  // namespace lockstep::nn
