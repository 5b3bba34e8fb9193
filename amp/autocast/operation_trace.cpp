// SPDX-License-Identifier: Apache-2.0
#include "amp/autocast/operation_trace.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "amp/autocast/autocast.h"
#include "runtime/autograd/meta.h"

namespace lockstep::amp {

namespace {

thread_local OperationTrace* trace = nullptr;

std::string_view decided_by(Op op) {
  switch (policy_of(op)) {
    case CastPolicy::kLowerPrecision:
      return Autocast::enabled() ? "lower precision" : "autocast off";
    case CastPolicy::kFloat32:
      return Autocast::enabled() ? "float32" : "autocast off";
    case CastPolicy::kPromote:
      return "promote";
    case CastPolicy::kNone:
      return "none";
    case CastPolicy::kRefused:
      return "refused under autocast";
  }
  throw UsageError("an autocast policy without a name");
}

/// Empty for a tensor that is no parameter.
std::string parameter_of(const Tensor& tensor) {
  return tensor.defined() && tensor.autograd_meta() ? tensor.autograd_meta()->name : std::string();
}

std::vector<DType> dtypes_of(const std::vector<Tensor>& tensors) {
  std::vector<DType> dtypes;
  for (const Tensor& tensor : tensors) {
    if (tensor.defined()) dtypes.push_back(tensor.dtype());
  }
  return dtypes;
}

bool has_compute_copy(const Tensor& tensor, DType dtype) {
  const auto& meta = tensor.autograd_meta();
  return meta && meta->compute_copy.defined() && meta->compute_copy.dtype() == dtype;
}

/// The module of the first parameter that is read, where it lies in `scope` or below; else `scope`.
std::string layer_of(const std::string& scope, const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    const std::string name = parameter_of(tensor);
    const std::size_t dot = name.rfind('.');
    if (dot == std::string::npos) continue;
    const std::string module = name.substr(0, dot);
    if (scope.empty() || module == scope || module.starts_with(scope + ".")) return module;
  }
  return scope;
}

}  // namespace

OperationTrace* OperationTrace::current() { return trace; }

OperationTrace::OperationTrace(std::function<std::string()> scope)
    : scope_(std::move(scope)), outer_(std::exchange(trace, this)), outer_observer_(autograd::observe_records(this)) {}

OperationTrace::~OperationTrace() {
  autograd::observe_records(outer_observer_);
  trace = outer_;
}

std::vector<TracedOperation> OperationTrace::operations() {
  while (!pending_.empty()) finish({}, {});
  return operations_;
}

void OperationTrace::asked(Op op, const Tensor& input, DType dtype, bool casts) {
  if (!asking() || pending_.back().op != op) {
    if (!pending_.empty()) pending_.back().runs_others = true;
    pending_.push_back({op, operations_.size(), scope_(), decided_by(op)});
    operations_.emplace_back();
  }
  std::vector<Question>& questions = pending_.back().questions;
  // An operation may ask for the dtype alone first, and then have the same tensor cast.
  if (!questions.empty() && !questions.back().casts && questions.back().input.is(input)) questions.pop_back();
  questions.push_back({input, dtype, casts});
}

void OperationTrace::note_cast(const Tensor& from, DType to) {
  if (!asking()) {
    operations_.push_back({.layer = scope_(),
                           .name = "cast",
                           .inputs = {from.dtype()},
                           .results = {to},
                           .decided = {},
                           .casts = {{parameter_of(from), from.dtype(), to, "cast"}}});
    return;
  }
  for (Question& question : pending_.back().questions) {
    if (question.casts && !question.cast && question.input.is(from) && question.dtype == to) {
      question.cast = true;
      return;
    }
  }
  pending_.back().other_casts.push_back({parameter_of(from), from.dtype(), to, "cast"});
}

void OperationTrace::recorded(std::string_view name, const std::vector<Tensor>& results,
                              const std::vector<Tensor>& inputs) {
  if (name == "cast") return note_cast(inputs.front(), results.front().dtype());
  const auto asked = std::ranges::find_if(pending_.rbegin(), pending_.rend(),
                                          [name](const Pending& pending) { return name_of(pending.op) == name; });
  if (asked != pending_.rend()) {
    const auto depth = static_cast<std::size_t>(pending_.rend() - asked);
    while (pending_.size() > depth) finish({}, {});
    return finish(results, inputs);
  }
  if (!pending_.empty()) pending_.back().runs_others = true;
  operations_.push_back({.layer = layer_of(scope_(), inputs),
                         .name = std::string(name),
                         .inputs = dtypes_of(inputs),
                         .results = dtypes_of(results),
                         .decided = {},
                         .casts = {}});
}

void OperationTrace::finish(const std::vector<Tensor>& results, const std::vector<Tensor>& inputs) {
  const Pending done = std::move(pending_.back());
  pending_.pop_back();
  TracedOperation operation{.layer = {},
                            .name = std::string(name_of(done.op)),
                            .inputs = {},
                            .results = dtypes_of(results),
                            .decided = done.decided,
                            .casts = {}};
  std::vector<Tensor> read;
  for (const Question& question : done.questions) {
    const DType from = question.input.dtype();
    read.push_back(question.input);
    operation.inputs.push_back(from);
    if (from == question.dtype) continue;
    std::string_view how = "cast";
    if (!question.casts) {
      how = "in the kernel";
    } else if (!question.cast) {
      how = has_compute_copy(question.input, question.dtype) ? "compute copy" : "cached cast";
    }
    operation.casts.push_back({parameter_of(question.input), from, question.dtype, how});
  }
  std::ranges::copy(done.other_casts, std::back_inserter(operation.casts));
  // Inputs that an operation reads without asking for their dtypes come behind those that it has asked for.
  for (std::size_t i = done.questions.size(); i < inputs.size(); ++i) {
    if (inputs[i].defined()) operation.inputs.push_back(inputs[i].dtype());
  }
  read.insert(read.end(), inputs.begin(), inputs.end());
  if (results.empty()) operation.results = {done.questions.front().dtype};
  operation.layer = layer_of(done.scope, read);
  operations_[done.line] = std::move(operation);
}

}  // namespace lockstep::amp
