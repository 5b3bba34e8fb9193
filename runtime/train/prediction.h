// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace lockstep::train {

/// Where the highest value stands; the first one on ties. -1, which is no class, where that is NaN.
std::int64_t class_of(std::span<const float> values);

/// Turns logits into probabilities, in place; each is rounded once.
void softmax(std::span<float> values);

/// Turns the logits of a mask into probabilities, in place; each is rounded once.
void sigmoid(std::span<float> values);

}  // namespace lockstep::train
