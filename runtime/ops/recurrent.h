// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "amp/autocast/policy.h"
#include "runtime/ops/types.h"
#include "runtime/tensor/tensor.h"

// One step of a recurrent network, made of other operations. x [N, in], state [N, H]. Under autocast all of it runs in
// the compute dtype, the state included, as PyTorch's cells do.
//
// A cell is its input's part of the gates and a step of the state. A layer computes the first for all times at once:
// gates_of(amp::Op::kLstmCell, x [N, T, in], parameters) is [N, T, gates H], and lstm_step() takes one time of it.

namespace lockstep::ops {

/// weight_ih [gates H, in], weight_hh [gates H, H], biases [gates H], each of which may be undefined; the gates lie
/// behind each other in PyTorch's order.
struct CellParameters {
  Tensor weight_ih;
  Tensor weight_hh;
  Tensor bias_ih;
  Tensor bias_hh;
};

/// activation(W_ih x + b_ih + W_hh h + b_hh); kTanh or kRelu are PyTorch's.
[[nodiscard]] Tensor rnn_cell(const Tensor& x, const Tensor& h, const CellParameters& parameters,
                              Activation activation = Activation::kTanh);
/// Gates r, z, n of Cho et al., "Learning Phrase Representations using RNN Encoder-Decoder", 2014, with r multiplied
/// into W_hn h + b_hn: n + z (h - n), n = tanh(W_in x + b_in + r (W_hn h + b_hn)).
[[nodiscard]] Tensor gru_cell(const Tensor& x, const Tensor& h, const CellParameters& parameters);

/// W_ih x + b_ih for x [..., in], in the dtype of the cell that `op` names: kRnnCell, kGruCell or kLstmCell.
[[nodiscard]] Tensor gates_of(amp::Op op, const Tensor& x, const CellParameters& parameters);

struct LstmState {
  Tensor h;
  Tensor c;
};
/// Gates i, f, g, o of Hochreiter, Schmidhuber, "Long Short-Term Memory", 1997: c' = f c + i g, h' = o tanh(c').
[[nodiscard]] LstmState lstm_cell(const Tensor& x, const LstmState& state, const CellParameters& parameters);

/// The cells on gates_of() the input: of_x [N, gates H].
[[nodiscard]] Tensor rnn_step(const Tensor& of_x, const Tensor& h, const CellParameters& parameters,
                              Activation activation = Activation::kTanh);
[[nodiscard]] Tensor gru_step(const Tensor& of_x, const Tensor& h, const CellParameters& parameters);
[[nodiscard]] LstmState lstm_step(const Tensor& of_x, const LstmState& state, const CellParameters& parameters);

}  // namespace lockstep::ops
