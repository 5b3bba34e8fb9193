// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/rank_clocks.h"

#include "runtime/tensor/stream.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::train {

using std::chrono::nanoseconds;

namespace {

constexpr int kExchanges = 20;

}  // namespace

nanoseconds own_time() { return std::chrono::steady_clock::now().time_since_epoch(); }

ClockOffset offset_to_rank_zero(comm::Communicator& communicator) {
  const Stream stream = Stream::calling_thread();
  const Tensor message = Tensor::zeros({1}, DType::kInt64);
  ClockOffset mine{.at = own_time()};
  for (int rank = 1; rank < communicator.size(); ++rank) {
    for (int i = 0; i < kExchanges; ++i) {
      communicator.barrier(stream);
      const nanoseconds sent = own_time();
      communicator.broadcast(message, rank, stream);
      if (communicator.rank() == 0) message.mutable_as<std::int64_t>()[0] = own_time().count();
      communicator.broadcast(message, 0, stream);
      const nanoseconds received = own_time();
      const nanoseconds error = (received - sent) / 2;
      if (communicator.rank() != rank || (i > 0 && error >= mine.error)) continue;
      const nanoseconds middle = sent + error;
      mine = {.at = middle, .offset = nanoseconds(message.as<std::int64_t>()[0]) - middle, .error = error};
    }
  }
  return mine;
}

nanoseconds at_rank_zero(nanoseconds time, const ClockOffset& before, const ClockOffset& behind) {
  if (behind.at <= before.at) return time + before.offset;
  const auto share =
      static_cast<double>((time - before.at).count()) / static_cast<double>((behind.at - before.at).count());
  const auto drift = static_cast<double>((behind.offset - before.offset).count());
  return time + before.offset + nanoseconds(static_cast<std::int64_t>(share * drift));
}

}  // namespace lockstep::train
