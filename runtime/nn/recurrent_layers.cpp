// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/recurrent_layers.h"

#include <cmath>
#include <string>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/movement.h"
#include "runtime/ops/shape.h"

namespace lockstep::nn {

namespace {

/// By time, bool [N, 1]: which sequences have an element there. Empty where all have.
std::vector<Tensor> counts_of(const Tensor& lengths, const Tensor& x) {
  if (!lengths.defined()) return {};
  if (lengths.shape() != Shape{x.size(0)} || lengths.dtype() != DType::kInt64 || lengths.device() != x.device()) {
    throw ShapeError("the lengths of " + describe(x) + " must be int64 [" + std::to_string(x.size(0)) +
                     "] on its device, are " + describe(lengths));
  }
  const std::int64_t times = x.size(1);
  if (lengths.device() == kCpu) {
    for (const std::int64_t length : lengths.as<std::int64_t>()) {
      if (length < 0 || length > times) {
        throw UsageError("a sequence of " + describe(x) + " cannot have the length " + std::to_string(length),
                         "A length counts the first elements of a sequence: 0 to " + std::to_string(times) + ".");
      }
    }
  }
  const Tensor places = ops::arange(times, {DType::kInt64, x.device()});
  return ops::split(ops::gt(ops::unsqueeze(lengths, 1), places), 1, 1);
}

/// x [N, T, ...] by time.
std::vector<Tensor> by_time(const Tensor& x) {
  std::vector<Tensor> all = ops::split(x, 1, 1);
  for (Tensor& one : all) one = ops::squeeze(one, 1);
  return all;
}

}  // namespace

RecurrentLayers::RecurrentLayers(amp::Op op, int gates, std::int64_t in, std::int64_t hidden,
                                 const RecurrentOptions& options)
    : op_(op), gates_(gates), hidden_(hidden), layers_(options.layers), directions_(options.bidirectional ? 2 : 1) {
  if (layers_ < 1 || in < 1 || hidden < 1) {
    throw UsageError("a recurrent network needs 1 or more layers, inputs and hidden numbers");
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    throw UsageError("the dropout between layers must be >= 0 and < 1, is " + std::to_string(options.dropout));
  }
  if (options.dropout > 0 && layers_ == 1) {
    throw UsageError("dropout lies between layers, and there is one", "Drop the outputs by an nn::Dropout.");
  }
  for (int layer = 0; layer < layers_; ++layer) {
    for (int d = 0; d < directions_; ++d) {
      add_direction(layer == 0 ? in : directions_ * hidden, layer, d == 1, options.bias);
    }
  }
  if (options.dropout > 0) dropout_ = &add_module<Dropout>("dropout", options.dropout);
}

void RecurrentLayers::add_direction(std::int64_t in, int layer, bool backward, bool bias) {
  const Initializer uniform = Initializer::uniform(1.0 / std::sqrt(static_cast<double>(hidden_)));
  const std::string suffix = "_l" + std::to_string(layer) + (backward ? "_reverse" : "");
  const std::int64_t rows = gates_ * hidden_;
  ops::CellParameters& added = parameters_.emplace_back();
  added.weight_ih = add_parameter("weight_ih" + suffix, {rows, in}, ParameterKind::kWeight, uniform);
  added.weight_hh = add_parameter("weight_hh" + suffix, {rows, hidden_}, ParameterKind::kWeight, uniform);
  if (!bias) return;
  added.bias_ih = add_parameter("bias_ih" + suffix, {rows}, ParameterKind::kBias, uniform);
  added.bias_hh = add_parameter("bias_hh" + suffix, {rows}, ParameterKind::kBias, uniform);
}

RecurrentLayers::Direction RecurrentLayers::read(const Tensor& x, bool backward, const std::vector<Tensor>& counts,
                                                 ops::LstmState state, const ops::CellParameters& parameters) const {
  // The products with W_ih are one for all times.
  const std::vector<Tensor> gates = by_time(ops::gates_of(op_, x, parameters));
  std::vector<Tensor> outputs(gates.size());
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const std::size_t t = backward ? gates.size() - 1 - i : i;
    ops::LstmState next = step(gates[t], state, parameters);
    outputs[t] = next.h;
    if (!counts.empty()) {
      outputs[t] = ops::where(counts[t], next.h, 0);
      next.h = ops::where(counts[t], next.h, state.h.to(next.h.dtype()));
      if (has_c()) next.c = ops::where(counts[t], next.c, state.c.to(next.c.dtype()));
    }
    state = std::move(next);
  }
  return {ops::stack(outputs, 1), state};
}

SequenceOutput RecurrentLayers::forward(const Tensor& x, const SequenceOptions& options) {
  require_defined(x, "a recurrent network", "the input");
  if (x.shape().rank() != 3 || x.size(1) < 1) {
    throw ShapeError("a recurrent network reads [N, T, in] with T >= 1, found " + describe(x));
  }
  const std::int64_t rows = layers_ * directions_;
  const auto start = [&](const Tensor& given, std::int64_t at) {
    if (!given.defined()) return Tensor::zeros({x.size(0), hidden_}, x.dtype(), x.device());
    if (given.shape() != Shape{rows, x.size(0), hidden_}) {
      throw ShapeError("the state must be " + Shape{rows, x.size(0), hidden_}.str() + ", is " + describe(given));
    }
    return given[at];
  };
  const auto [h, c] = options.state;
  if (has_c() ? h.defined() != c.defined() : c.defined()) {
    throw UsageError(has_c() ? "the state of an LSTM is h and c, and one of the two is given"
                             : "this network has no c, and the state has one",
                     "Give SequenceOutput::state of a network like this, or neither.");
  }
  const std::vector<Tensor> counts = counts_of(options.lengths, x);
  std::vector<Tensor> last_h, last_c;
  Tensor y = x;
  for (int layer = 0; layer < layers_; ++layer) {
    std::vector<Tensor> outputs;
    for (int d = 0; d < directions_; ++d) {
      const int at = layer * directions_ + d;
      ops::LstmState state{start(h, at), {}};
      if (has_c()) state.c = start(c, at);
      const Direction read_once = read(y, d == 1, counts, std::move(state), parameters_[static_cast<std::size_t>(at)]);
      outputs.push_back(read_once.y);
      last_h.push_back(read_once.last.h);
      if (has_c()) last_c.push_back(read_once.last.c);
    }
    y = directions_ == 1 ? outputs.front() : ops::cat(outputs, 2);
    if (dropout_ != nullptr && layer + 1 < layers_) y = (*dropout_)(y);
  }
  return {y, {ops::stack(last_h), has_c() ? ops::stack(last_c) : Tensor()}};
}

}  // namespace lockstep::nn
