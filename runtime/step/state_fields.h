// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::checkpoint {
struct Checkpoint;
class TrainingState;
}  // namespace lockstep::checkpoint

namespace lockstep::step {

// Which fields a checkpoint's state has. Another version of Lockstep may have saved it, with fields of its own or
// without some of ours.

/// TrainingState.format of the states that this version saves.
inline constexpr std::uint32_t kStateFormat = 2;

/// Throws StorageError that names each field which resuming reads and the state lacks, as far as states of its format
/// have it. Of an earlier format those that are not there are taken to be 0.
void require_complete(const checkpoint::Checkpoint& saved);
/// Throws the same error where `lacking` names fields.
void refuse_lacking(const checkpoint::Checkpoint& saved, const std::vector<std::string>& lacking);

/// "sampler.field 9": what the state has and this version does not know, the job in it left aside.
std::vector<std::string> unknown_fields(const checkpoint::TrainingState& state);

}  // namespace lockstep::step
