// SPDX-License-Identifier: Apache-2.0
#include "runtime/ops/recurrent.h"

#include <string>
#include <vector>

#include "amp/autocast/autocast.h"
#include "runtime/base/error.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/linear.h"
#include "runtime/ops/movement.h"

namespace lockstep::ops {

namespace {

/// Casts operands to the dtype of the cell's policy. An operation casts all its operands before it computes anything.
struct Casts {
  amp::Op op;

  Tensor operator()(const Tensor& tensor) const { return amp::autocast_if_defined(op, tensor); }
  CellParameters operator()(const CellParameters& parameters) const {
    return {(*this)(parameters.weight_ih), (*this)(parameters.weight_hh), (*this)(parameters.bias_ih),
            (*this)(parameters.bias_hh)};
  }
  /// W_ih and b_ih alone.
  CellParameters of_input(const CellParameters& parameters) const {
    return {(*this)(parameters.weight_ih), {}, (*this)(parameters.bias_ih), {}};
  }
  /// W_hh and b_hh alone.
  CellParameters of_state(const CellParameters& parameters) const {
    return {{}, (*this)(parameters.weight_hh), {}, (*this)(parameters.bias_hh)};
  }
};

void require_weights(std::string_view name, const CellParameters& parameters) {
  require_defined(parameters.weight_ih, name, "weight_ih");
  require_defined(parameters.weight_hh, name, "weight_hh");
}

/// Checks a cell's operands in the order in which they are given.
void require_cell(std::string_view name, const Tensor& x, const Tensor& h, const CellParameters& parameters) {
  require_defined(x, name, "the input");
  require_defined(h, name, "the state");
  require_weights(name, parameters);
  if (x.shape().rank() != 2) throw ShapeError(std::string(name) + ": x must be [N, in], found " + describe(x));
}

// From here on operands are cast.

Tensor input_gates(std::string_view name, const Tensor& x, const CellParameters& parameters) {
  const Tensor& weight = parameters.weight_ih;
  if (x.shape().rank() < 1 || weight.shape().rank() != 2 || weight.size(1) != x.size(-1)) {
    throw ShapeError(std::string(name) + ": weight_ih must be [gates H, in], found " + describe(weight) + " for x of " +
                     describe(x));
  }
  return linear(x, weight, parameters.bias_ih);
}

/// The state's summand of the gates, beside the input's: [N, gates H].
Tensor state_gates(std::string_view name, const Tensor& of_x, const Tensor& h, const CellParameters& parameters,
                   std::int64_t gates) {
  if (h.shape().rank() != 2 || of_x.shape() != Shape{h.size(0), gates * h.size(1)}) {
    throw ShapeError(std::string(name) + ": x must be [N, in], the state [N, H] and the weights [" +
                     std::to_string(gates) + " H, in] and [" + std::to_string(gates) + " H, H], found a state of " +
                     describe(h) + " and gates of " + describe(of_x));
  }
  if (parameters.weight_hh.shape() != Shape{of_x.size(1), h.size(1)}) {
    throw ShapeError(std::string(name) + ": weight_hh must be " + Shape{of_x.size(1), h.size(1)}.str() + ", found " +
                     describe(parameters.weight_hh));
  }
  return linear(h, parameters.weight_hh, parameters.bias_hh);
}

Tensor rnn(const Tensor& of_x, const Tensor& h, const CellParameters& parameters, kernels::Activation activation) {
  return activate(activation, add(of_x, state_gates(name_of(amp::Op::kRnnCell), of_x, h, parameters, 1)));
}

Tensor gru(const Tensor& of_input, const Tensor& h, const CellParameters& parameters) {
  const Tensor of_state = state_gates(name_of(amp::Op::kGruCell), of_input, h, parameters, 3);
  const std::vector<Tensor> of_x = chunk(of_input, 3, 1), of_h = chunk(of_state, 3, 1);
  const Tensor reset = sigmoid(add(of_x[0], of_h[0])), keep = sigmoid(add(of_x[1], of_h[1]));
  const Tensor candidate = tanh(add(of_x[2], mul(reset, of_h[2])));
  return add(mul(sub(h, candidate), keep), candidate);
}

LstmState lstm(const Tensor& of_x, const LstmState& state, const CellParameters& parameters) {
  const Tensor of_h = state_gates(name_of(amp::Op::kLstmCell), of_x, state.h, parameters, 4);
  if (state.c.shape() != state.h.shape()) {
    throw ShapeError("lstm_cell: h and c must have one shape, found " + describe(state.h) + " and " +
                     describe(state.c));
  }
  const std::vector<Tensor> all = chunk(add(of_x, of_h), 4, 1);
  const Tensor c = add(mul(sigmoid(all[1]), state.c), mul(sigmoid(all[0]), tanh(all[2])));
  return {mul(sigmoid(all[3]), tanh(c)), c};
}

/// Checks the operands of a step on gates_of() the input.
void require_step(std::string_view name, const Tensor& of_x, const Tensor& h, const CellParameters& parameters) {
  require_defined(of_x, name, "the input's part of the gates");
  require_defined(h, name, "the state");
  require_weights(name, parameters);
}

}  // namespace

Tensor gates_of(amp::Op op, const Tensor& x, const CellParameters& parameters) {
  require_defined(x, name_of(op), "the input");
  require_weights(name_of(op), parameters);
  const Casts cast{op};
  return input_gates(name_of(op), cast(x), cast.of_input(parameters));
}

Tensor rnn_step(const Tensor& of_x, const Tensor& h, const CellParameters& parameters, kernels::Activation activation) {
  require_step(name_of(amp::Op::kRnnCell), of_x, h, parameters);
  const Casts cast{amp::Op::kRnnCell};
  return rnn(cast(of_x), cast(h), cast.of_state(parameters), activation);
}

Tensor gru_step(const Tensor& of_x, const Tensor& h, const CellParameters& parameters) {
  require_step(name_of(amp::Op::kGruCell), of_x, h, parameters);
  const Casts cast{amp::Op::kGruCell};
  return gru(cast(of_x), cast(h), cast.of_state(parameters));
}

LstmState lstm_step(const Tensor& of_x, const LstmState& state, const CellParameters& parameters) {
  require_defined(state.c, name_of(amp::Op::kLstmCell), "the state c");
  require_step(name_of(amp::Op::kLstmCell), of_x, state.h, parameters);
  const Casts cast{amp::Op::kLstmCell};
  return lstm(cast(of_x), {cast(state.h), cast(state.c)}, cast.of_state(parameters));
}

Tensor rnn_cell(const Tensor& x, const Tensor& h, const CellParameters& parameters, kernels::Activation activation) {
  const std::string_view name = name_of(amp::Op::kRnnCell);
  require_cell(name, x, h, parameters);
  const Casts cast{amp::Op::kRnnCell};
  const Tensor in = cast(x), state = cast(h);
  const CellParameters with = cast(parameters);
  return rnn(input_gates(name, in, with), state, with, activation);
}

Tensor gru_cell(const Tensor& x, const Tensor& h, const CellParameters& parameters) {
  const std::string_view name = name_of(amp::Op::kGruCell);
  require_cell(name, x, h, parameters);
  const Casts cast{amp::Op::kGruCell};
  const Tensor in = cast(x), state = cast(h);
  const CellParameters with = cast(parameters);
  return gru(input_gates(name, in, with), state, with);
}

LstmState lstm_cell(const Tensor& x, const LstmState& state, const CellParameters& parameters) {
  const std::string_view name = name_of(amp::Op::kLstmCell);
  require_defined(state.c, name, "the state c");
  require_cell(name, x, state.h, parameters);
  const Casts cast{amp::Op::kLstmCell};
  const Tensor in = cast(x);
  const LstmState before{cast(state.h), cast(state.c)};
  const CellParameters with = cast(parameters);
  return lstm(input_gates(name, in, with), before, with);
}

}  // namespace lockstep::ops
