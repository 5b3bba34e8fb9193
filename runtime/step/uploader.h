// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/data/batch_slots.h"
#include "runtime/step/step_inputs.h"
#include "runtime/tensor/stream.h"

namespace lockstep::step {

/// Brings a step's inputs to the device while the device computes the step before. A stream of its own copies them to
/// device memory where they wait; the current stream copies them from there to the memory that every step reads. Inputs
/// in page-locked memory, such as the batches of a data::Loader for this device, are copied directly. The call first
/// copies inputs in other host memory to page-locked memory. Inputs on the device are copied to the memory that steps
/// read, in the order of the current stream. On the CPU batches stay where they are.
///
/// Steps of the same shapes find their inputs at the same address. Where batches are dealt (data::Batch), the address
/// changes at the same steps on all ranks, because each rank has room for the largest rank's share.
class Uploader {
 public:
  /// `ranks`: that share a step.
  explicit Uploader(Device device, int ranks = 1);

  /// The inputs of step `step`, on the device in the order of its current stream; until the next call. `stop`: whether
  /// this rank was told to stop. The batches' memory may be given back in the order of the current stream.
  StepInputs upload(std::uint64_t step, std::vector<data::Batch> micro_batches, bool stop);

  /// Bytes of inputs that this thread had to copy within host memory so far.
  std::size_t staged_bytes() const { return staged_bytes_; }

 private:
  struct Copy;
  /// Page-locked memory and the copies that read it.
  struct Staging {
    Storage memory;
    Event copied;
  };
  /// Bytes that the tensor takes of the place of inputs, on the rank with the most samples.
  std::size_t most_bytes(const Tensor& tensor, const data::Batch& batch) const;
  /// Staging memory for the next step; waits until the step that used it before has been copied.
  const Staging& prepare(std::size_t bytes);
  /// Device memory of at least so many bytes for inputs that come from the host, and for all.
  void make_room(std::size_t from_host, std::size_t all);
  void send(const std::vector<Copy>& copies, std::size_t bytes);

  Device device_;
  std::int64_t ranks_;
  std::array<Staging, data::kStepsOnTheWay> stagings_;
  std::size_t next_ = 0;
  std::size_t staged_bytes_ = 0;
  Storage arriving_;              ///< device memory that the next step's inputs are copied to
  Event taken_;                   ///< that memory is free again
  Storage inputs_;                ///< device memory that steps read
  std::optional<Stream> stream_;  ///< a GPU's, for uploads; last: its copies end before the memory that they use
};

}  // namespace lockstep::step
