// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/over_ranks.h"

namespace lockstep::train {

double over_ranks(double mine, comm::ReduceOp operation, comm::Communicator& communicator) {
  const Tensor number = Tensor::from<float>({static_cast<float>(mine)}, {1});
  communicator.all_reduce(number, operation, 1.0f, Stream::calling_thread());
  return number.item();
}

bool any_rank(bool mine, comm::Communicator& communicator) {
  return over_ranks(mine ? 1 : 0, comm::ReduceOp::kMax, communicator) != 0;
}

}  // namespace lockstep::train
