// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/tensor/device.h"

namespace lockstep {

/// The purposes for which memory is taken.
enum class MemoryPurpose : std::uint8_t {
  kTensors,  ///< nothing of what follows
  kMasterWeights,
  kComputeCopies,
  kGradients,
  kFloat32Gradients,
  kOptimizerState,
  kActivations,
  kActivationGradients,
  kInputs,
  kWorkspaces,
  kSegmentTables,
};
inline constexpr std::size_t kMemoryPurposes = 11;
/// "master weights".
std::string_view name_of(MemoryPurpose purpose);

/// While it lives, memory that the calling thread takes is counted under this purpose. Scopes nest; a new thread starts
/// with kTensors.
class [[nodiscard]] MemoryScope {
 public:
  [[nodiscard]] explicit MemoryScope(MemoryPurpose purpose);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  MemoryPurpose outer_;
};

/// Bytes that this process holds on a device, in the sizes that were asked for.
struct MemoryUse {
  std::size_t allocated = 0;  ///< handed out and not yet given back
  std::size_t peak = 0;       ///< the most that was allocated at once since the start or reset_peak()
};
struct MemoryStatistics : MemoryUse {
  std::size_t reserved = 0;  ///< taken from the system by the caching allocator, rounding and cached blocks included
};

/// The memory of all tensors and workspaces on the device, taken from its allocator or from a communicator.
MemoryStatistics memory_statistics(Device device);
/// The memory of the tensors and workspaces that were taken for `purpose`.
MemoryUse memory_use(Device device, MemoryPurpose purpose);
/// Counts the peaks anew, from the memory that is allocated now.
void reset_peak(Device device);
/// The purposes that hold the most: "activations 512 MiB, gradients 48 MiB"; "nothing" where nobody holds anything.
std::string memory_users(Device device);

}  // namespace lockstep
