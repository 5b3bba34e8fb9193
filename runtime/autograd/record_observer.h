// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <string_view>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace lockstep::autograd {

class Node;

/// Is told of every operation that this thread hands to record(), whether or not its inputs require gradients, and of
/// every one that a backward pass of this thread comes to.
class RecordObserver {
 public:
  virtual ~RecordObserver() = default;
  virtual void recorded(std::string_view name, const std::vector<Tensor>& results,
                        const std::vector<Tensor>& inputs) = 0;
  /// The operation with this first result, recorded before, has these options, and has also read `others`, which have
  /// no gradients; undefined where one is left out.
  virtual void noted(const Tensor& result, const std::any& options, const std::vector<Tensor>& others) {
    static_cast<void>(result), static_cast<void>(options), static_cast<void>(others);
  }
  /// The operation recorded last has this place in the graph; not called for one that has none.
  virtual void placed(const Node& node) { static_cast<void>(node); }
  /// Between the two a backward pass computes this operation's gradients and hands them on: sums, hooks and the leaves'
  /// callbacks included. A pass within the pass nests.
  virtual void backward_begins(const Node& node) { static_cast<void>(node); }
  virtual void backward_ends(const Node& node) { static_cast<void>(node); }
};

/// Makes `observer` this thread's, null for none. Returns the one before.
RecordObserver* observe_records(RecordObserver* observer);
/// This thread's; null for none.
RecordObserver* record_observer();

/// An operation's word to the observer behind record(): what it was told besides tensors, as a type of its own.
template <class Options, class... Others>
void note_options(const Tensor& result, const Options& options, const Others&... others) {
  if (RecordObserver* const observer = record_observer()) observer->noted(result, options, {others...});
}

}  // namespace lockstep::autograd
