// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/agreement.h"

#include <algorithm>

#include "runtime/tensor/stream.h"

namespace lockstep::amp {

Verdict agree(const Tensor& reduced, const Tensor& local, comm::Communicator& communicator) {
  // One vector: whether a parameter is bad anywhere, then a number that is highest for the lowest bad rank.
  const Tensor& own = !local.defined() && communicator.size() == 1 ? reduced : local;
  const std::int64_t count = reduced.numel();
  const Tensor ballot = Tensor::zeros({2 * count}, DType::kFloat32);
  const std::span<float> votes = ballot.as<float>();
  const float ballot_number = static_cast<float>(communicator.size() - communicator.rank());
  for (std::int64_t i = 0; i < count; ++i) {
    const auto slot = static_cast<std::size_t>(i);
    const bool mine = own.defined() && own.as<float>()[slot] != 0.0f;
    votes[slot] = reduced.as<float>()[slot] != 0.0f || mine ? 1.0f : 0.0f;
    votes[slot + static_cast<std::size_t>(count)] = mine ? ballot_number : 0.0f;
  }
  communicator.all_reduce(ballot, comm::ReduceOp::kMax, 1.0f, Stream::calling_thread());
  Verdict verdict;
  const auto bad = std::find_if(votes.begin(), votes.begin() + count, [](float vote) { return vote != 0.0f; });
  if (bad == votes.begin() + count) return verdict;
  verdict.found_inf = true;
  verdict.slot = static_cast<int>(bad - votes.begin());
  const float number = votes[static_cast<std::size_t>(verdict.slot + count)];
  if (number > 0.0f) verdict.rank = communicator.size() - static_cast<int>(number);
  return verdict;
}

}  // namespace lockstep::amp
