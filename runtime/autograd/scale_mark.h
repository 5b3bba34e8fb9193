// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/autograd/meta.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

class Node;

/// Tells which loss scale multiplies the gradients of a pass (PassState::mark, BackwardContext::note_scaler()) or of
/// a slot (Meta::slot_mark), as far as that is known.
using ScaleMark = std::uint64_t;

constexpr ScaleMark kUnknownScale = 0;    ///< a gradient of the caller's own, a loss times a number
constexpr ScaleMark kPlain = 1;           ///< 1
constexpr ScaleMark kScaledAndPlain = 2;  ///< a sum of gradients with a scaler's scale and without
constexpr ScaleMark kTwoScales = 3;       ///< a sum of gradients with two scales of one scaler

/// The scale that scaler `id`, from 1, has after its scale changed `changes` times.
constexpr ScaleMark scale_mark(std::uint64_t id, std::uint32_t changes) { return id << 32 | changes; }
/// The scaler of a mark; 0 where it is of none, or of a sum.
constexpr std::uint64_t scaler_in(ScaleMark mark) { return mark >> 32; }

/// The mark of a sum of gradients with these marks; neither is of two scalers.
ScaleMark mark_of_sum(ScaleMark one, ScaleMark other);

/// Finds the mark of a pass in its graph, before the pass runs. The pass begins with ones at `roots` and has the
/// operations `order`. Follows what OnLosses says of them: sums, and products of a scaled loss with plain numbers.
ScaleMark mark_of_losses(const std::vector<std::shared_ptr<Meta>>& roots,
                         const std::vector<std::shared_ptr<Node>>& order);

/// Counts a gradient of this mark for the leaf's slot. Returns whether it is to be added to what lies there. What
/// cannot be unscaled by one number is noted, as the gradient may be forgotten unused. Throws UsageError where what
/// lies there was unscaled, or is of another scaler.
bool enter_slot(Meta& leaf, ScaleMark mark);

/// Throws UsageError, which names `operation` and advises, where the leaf's gradient is known to be multiplied by a
/// scaler's scale.
void require_unscaled(const Tensor& leaf, std::string_view operation, std::string_view advice);

}  // namespace lockstep::autograd
