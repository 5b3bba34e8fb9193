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

/// The summands that x and the state add to the gates: [N, gates H] each. Casts as the cell's policy says.
struct Gates {
  Tensor h;  ///< the state, as it is read
  Tensor of_x;
  Tensor of_h;

  Gates(amp::Op op, const Tensor& x, const Tensor& state, const CellParameters& parameters, std::int64_t gates)
      : h(state) {
    const std::string name(name_of(op));
    require_defined(x, name, "the input");
    require_defined(h, name, "the state");
    require_defined(parameters.weight_ih, name, "weight_ih");
    require_defined(parameters.weight_hh, name, "weight_hh");
    if (x.shape().rank() != 2 || h.shape().rank() != 2 || x.size(0) != h.size(0)) {
      throw ShapeError(name + ": x must be [N, in] and the state [N, H], found " + describe(x) + " and " + describe(h));
    }
    const std::int64_t rows = gates * h.size(1);
    if (parameters.weight_ih.shape() != Shape{rows, x.size(1)} ||
        parameters.weight_hh.shape() != Shape{rows, h.size(1)}) {
      throw ShapeError(name + ": weight_ih must be " + Shape{rows, x.size(1)}.str() + " and weight_hh " +
                       Shape{rows, h.size(1)}.str() + ", found " + describe(parameters.weight_ih) + " and " +
                       describe(parameters.weight_hh));
    }
    const auto cast = [op](const Tensor& tensor) { return amp::autocast_if_defined(op, tensor); };
    const Tensor in = cast(x), weight_ih = cast(parameters.weight_ih), bias_ih = cast(parameters.bias_ih);
    const Tensor weight_hh = cast(parameters.weight_hh), bias_hh = cast(parameters.bias_hh);
    h = cast(state);
    of_x = linear(in, weight_ih, bias_ih);
    of_h = linear(h, weight_hh, bias_hh);
  }
};

}  // namespace

Tensor rnn_cell(const Tensor& x, const Tensor& h, const CellParameters& parameters, kernels::Activation activation) {
  const Gates gates(amp::Op::kRnnCell, x, h, parameters, 1);
  return activate(activation, add(gates.of_x, gates.of_h));
}

Tensor gru_cell(const Tensor& x, const Tensor& state, const CellParameters& parameters) {
  const Gates gates(amp::Op::kGruCell, x, state, parameters, 3);
  const std::vector<Tensor> of_x = chunk(gates.of_x, 3, 1), of_h = chunk(gates.of_h, 3, 1);
  const Tensor& h = gates.h;
  const Tensor reset = sigmoid(add(of_x[0], of_h[0])), keep = sigmoid(add(of_x[1], of_h[1]));
  const Tensor candidate = tanh(add(of_x[2], mul(reset, of_h[2])));
  return add(mul(sub(h, candidate), keep), candidate);
}

LstmState lstm_cell(const Tensor& x, const LstmState& state, const CellParameters& parameters) {
  const Tensor before = amp::autocast(amp::Op::kLstmCell, state.c, "the state c");
  const Gates gates(amp::Op::kLstmCell, x, state.h, parameters, 4);
  if (state.c.shape() != state.h.shape()) {
    throw ShapeError("lstm_cell: h and c must have one shape, found " + describe(state.h) + " and " +
                     describe(state.c));
  }
  const std::vector<Tensor> all = chunk(add(gates.of_x, gates.of_h), 4, 1);
  const Tensor c = add(mul(sigmoid(all[1]), before), mul(sigmoid(all[0]), tanh(all[2])));
  return {mul(sigmoid(all[3]), tanh(c)), c};
}

}  // namespace lockstep::ops
