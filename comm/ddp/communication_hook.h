// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "comm/group/communicator.h"
#include "runtime/nn/arena.h"
#include "runtime/tensor/stream.h"

namespace lockstep::comm {

/// A bucket of gradients on its way to the other ranks.
struct GradientBucket {
  /// [elements], this rank's own: in the wire's dtype; float32 where several ranks reduce_in_float32, and where a lone
  /// rank has added up several passes. The parameters of `slots` lie in it one behind the other, each at its begin less
  /// that of the first, padded with zeros.
  Tensor gradients;
  /// The reduced gradients are the sum over the ranks times this number: 1 / ranks where gradients are averaged, times
  /// the share's factor.
  double weight = 1;
  int number = 0;  ///< of `count`, in the order in which they leave, which is the same on every rank
  int count = 1;
  std::span<const nn::Arena::Slot> slots;
  Communicator& communicator;  ///< for this bucket's collectives alone
  /// On which the gradients are ready, and all work with them is enqueued; on a GPU the current one during the call, so
  /// that new tensors belong to it.
  Stream stream;
  /// Reduces the bucket as it is reduced without a hook.
  std::function<void()> all_reduce;
};

/// Reduces a bucket in place of all_reduce(): has `gradients` hold `weight` times the sum over the ranks, or what
/// stands for it, the same bits on every rank, once the work that it enqueues has run. Called on the thread of the
/// backward pass, which goes on meanwhile; what it throws leaves through backward().
using CommunicationHook = std::function<void(const GradientBucket& bucket)>;

}  // namespace lockstep::comm
