// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

/// Is told of every operation that this thread hands to record(), whether or not its inputs require gradients.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  virtual void recorded(std::string_view name, const std::vector<Tensor>& results,
                        const std::vector<Tensor>& inputs) = 0;
};

/// Makes `observer` this thread's, null for none. Returns the one before.
RecordObserver* observe_records(RecordObserver* observer);

}  // namespace lockstep::autograd
