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

void require_weights(std::string_view name, const CellParameters& parameters) {
  require_defined(parameters.weight_ih, name, "weight_ih");
  require_defined(parameters.weight_hh, name, "weight_hh");
}

/// The summands that the input and the state add to the gates: [N, gates H] each. Casts as the cell's policy says.
struct Gates {
  Tensor h;  ///< the state, as it is read
  Tensor of_x;
  Tensor of_h;

  Gates(amp::Op op, const Tensor& of_input, const Tensor& state, const CellParameters& parameters, std::int64_t gates)
      : h(state), of_x(of_input) {
    const std::string_view name = name_of(op);
    require_defined(of_x, name, "the input's part of the gates");
    require_defined(h, name, "the state");
    require_weights(name, parameters);
    if (h.shape().rank() != 2 || of_x.shape() != Shape{h.size(0), gates * h.size(1)}) {
      throw ShapeError(std::string(name) + ": x must be [N, in], the state [N, H] and the weights [" +
                       std::to_string(gates) + " H, in] and [" + std::to_string(gates) + " H, H], found a state of " +
                       describe(h) + " and gates of " + describe(of_x));
    }
    if (parameters.weight_hh.shape() != Shape{of_x.size(1), h.size(1)}) {
      throw ShapeError(std::string(name) + ": weight_hh must be " + Shape{of_x.size(1), h.size(1)}.str() + ", found " +
                       describe(parameters.weight_hh));
    }
    const auto cast = [op](const Tensor& tensor) { return amp::autocast_if_defined(op, tensor); };
    h = cast(state);
    of_x = cast(of_x);
    of_h = linear(h, cast(parameters.weight_hh), cast(parameters.bias_hh));
  }
};

/// gates_of() a cell's x, beside which it has a state.
Tensor of_cell(amp::Op op, const Tensor& x, const Tensor& h, const CellParameters& parameters) {
  require_defined(x, name_of(op), "the input");
  require_defined(h, name_of(op), "the state");
  if (x.shape().rank() != 2) throw ShapeError(std::string(name_of(op)) + ": x must be [N, in], found " + describe(x));
  return gates_of(op, x, parameters);
}

}  // namespace

Tensor gates_of(amp::Op op, const Tensor& x, const CellParameters& parameters) {
  require_defined(x, name_of(op), "the input");
  require_weights(name_of(op), parameters);
  const Tensor& weight = parameters.weight_ih;
  if (x.shape().rank() < 1 || weight.shape().rank() != 2 || weight.size(1) != x.size(-1)) {
    throw ShapeError(std::string(name_of(op)) + ": weight_ih must be [gates H, in], found " + describe(weight) +
                     " for x of " + describe(x));
  }
  const auto cast = [op](const Tensor& tensor) { return amp::autocast_if_defined(op, tensor); };
  return linear(cast(x), cast(weight), cast(parameters.bias_ih));
}

Tensor rnn_step(const Tensor& of_x, const Tensor& h, const CellParameters& parameters, kernels::Activation activation) {
  const Gates gates(amp::Op::kRnnCell, of_x, h, parameters, 1);
  return activate(activation, add(gates.of_x, gates.of_h));
}

Tensor gru_step(const Tensor& of_input, const Tensor& state, const CellParameters& parameters) {
  const Gates gates(amp::Op::kGruCell, of_input, state, parameters, 3);
  const std::vector<Tensor> of_x = chunk(gates.of_x, 3, 1), of_h = chunk(gates.of_h, 3, 1);
  const Tensor& h = gates.h;
  const Tensor reset = sigmoid(add(of_x[0], of_h[0])), keep = sigmoid(add(of_x[1], of_h[1]));
  const Tensor candidate = tanh(add(of_x[2], mul(reset, of_h[2])));
  return add(mul(sub(h, candidate), keep), candidate);
}

LstmState lstm_step(const Tensor& of_x, const LstmState& state, const CellParameters& parameters) {
  const Tensor before = amp::autocast(amp::Op::kLstmCell, state.c, "the state c");
  const Gates gates(amp::Op::kLstmCell, of_x, state.h, parameters, 4);
  if (state.c.shape() != state.h.shape()) {
    throw ShapeError("lstm_cell: h and c must have one shape, found " + describe(state.h) + " and " +
                     describe(state.c));
  }
  const std::vector<Tensor> all = chunk(add(gates.of_x, gates.of_h), 4, 1);
  const Tensor c = add(mul(sigmoid(all[1]), before), mul(sigmoid(all[0]), tanh(all[2])));
  return {mul(sigmoid(all[3]), tanh(c)), c};
}

Tensor rnn_cell(const Tensor& x, const Tensor& h, const CellParameters& parameters, kernels::Activation activation) {
  return rnn_step(of_cell(amp::Op::kRnnCell, x, h, parameters), h, parameters, activation);
}

Tensor gru_cell(const Tensor& x, const Tensor& h, const CellParameters& parameters) {
  return gru_step(of_cell(amp::Op::kGruCell, x, h, parameters), h, parameters);
}

LstmState lstm_cell(const Tensor& x, const LstmState& state, const CellParameters& parameters) {
  require_defined(state.c, name_of(amp::Op::kLstmCell), "the state c");
  return lstm_step(of_cell(amp::Op::kLstmCell, x, state.h, parameters), state, parameters);
}

}  // namespace lockstep::ops
