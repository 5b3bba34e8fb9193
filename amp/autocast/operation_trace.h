// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "amp/autocast/policy.h"
#include "runtime/autograd/record_observer.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::amp {

/// A value that an operation reads in another dtype than it has.
struct TracedCast {
  std::string parameter;  ///< its path; empty for any other tensor
  DType from;
  DType to;
  /// "cast"; "compute copy", which the optimizer keeps up to date; "cached cast" of an operation before; "in the
  /// kernel", which widens what it reads.
  std::string_view how;
};

/// The dtypes that one operation of a forward pass was given and ran in.
struct TracedOperation {
  std::string layer;  ///< path of the module; empty outside any, as the loss is
  std::string name;
  std::vector<DType> inputs;   ///< as they come in
  std::vector<DType> results;  ///< of an operation without a backward: the dtype in which it runs
  /// The policy that decided: "lower precision", "float32", "promote", "none"; "autocast off" where the first two did
  /// not count; empty for a cast that stands alone and for an operation that has not asked.
  std::string_view decided;
  std::vector<TracedCast> casts;
};

/// Notes, while it lives, what this thread's operations ask the policy table, what is cast, and what comes out. A
/// thread without a trace pays one comparison an operation.
class [[nodiscard]] OperationTrace final : private autograd::RecordObserver {
 public:
  /// `scope` gives the path of the module whose forward pass runs. An operation that reads a parameter of a module
  /// below that one is counted to the parameter's module.
  [[nodiscard]] explicit OperationTrace(std::function<std::string()> scope = [] { return std::string(); });
  ~OperationTrace() override;
  OperationTrace(const OperationTrace&) = delete;
  OperationTrace& operator=(const OperationTrace&) = delete;

  /// The operations up to now, in their order.
  std::vector<TracedOperation> operations();

  /// For the policy table. Null: there is none on this thread.
  static OperationTrace* current();
  /// `op` has asked in which dtype it reads `input` and was told `dtype`. `casts`: autocast() casts `input`, not the
  /// kernel. An operation asks for all of its inputs before it runs others; a later question starts a new operation.
  void asked(Op op, const Tensor& input, DType dtype, bool casts);

 private:
  struct Question {
    Tensor input;
    DType dtype;
    bool casts;
    bool cast = false;  ///< the cast was recorded
  };
  /// An operation that has asked and is not recorded yet. One that is made of others may never be.
  struct Pending {
    Op op;
    std::size_t line;  ///< its place in operations_
    std::string scope;
    std::string_view decided;
    std::vector<Question> questions = {};
    std::vector<TracedCast> other_casts = {};
    bool runs_others = false;  ///< another operation came: it has asked for all of its inputs
  };

  void recorded(std::string_view name, const std::vector<Tensor>& results, const std::vector<Tensor>& inputs) override;
  void note_cast(const Tensor& from, DType to);
  /// Whether the last pending operation is still asking.
  bool asking() const { return !pending_.empty() && !pending_.back().runs_others; }
  /// Writes the line of the last pending operation. `inputs`: all that it reads, which may be more than it asked for.
  void finish(const std::vector<Tensor>& results, const std::vector<Tensor>& inputs);

  std::function<std::string()> scope_;
  std::vector<Pending> pending_;  ///< each one within the one before, or behind one that is never recorded
  std::vector<TracedOperation> operations_;
  OperationTrace* outer_;
  autograd::RecordObserver* outer_observer_;
};

}  // namespace lockstep::amp
