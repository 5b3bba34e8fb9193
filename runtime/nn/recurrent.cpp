// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/recurrent.h"

#include <cmath>

namespace lockstep::nn {

Cell::Cell(std::int64_t gates, std::int64_t in, std::int64_t hidden, bool bias) : hidden_(hidden) {
  const Initializer uniform = Initializer::uniform(1.0 / std::sqrt(static_cast<double>(hidden)));
  const std::int64_t rows = gates * hidden;
  parameters_.weight_ih = add_parameter("weight_ih", {rows, in}, ParameterKind::kWeight, uniform);
  parameters_.weight_hh = add_parameter("weight_hh", {rows, hidden}, ParameterKind::kWeight, uniform);
  if (!bias) return;
  parameters_.bias_ih = add_parameter("bias_ih", {rows}, ParameterKind::kBias, uniform);
  parameters_.bias_hh = add_parameter("bias_hh", {rows}, ParameterKind::kBias, uniform);
}

Tensor Cell::zeros(const Tensor& x) const { return Tensor::zeros({x.size(0), hidden_}, x.dtype(), x.device()); }

RnnCell::RnnCell(std::int64_t in, std::int64_t hidden, bool bias, ops::Activation activation)
    : Cell(1, in, hidden, bias), activation_(activation) {}

Tensor RnnCell::forward(const Tensor& x, const Tensor& h) { return ops::rnn_cell(x, h, parameters_, activation_); }

Tensor GruCell::forward(const Tensor& x, const Tensor& h) { return ops::gru_cell(x, h, parameters_); }

ops::LstmState LstmCell::forward(const Tensor& x, const ops::LstmState& state) {
  return ops::lstm_cell(x, state, parameters_);
}

}  // namespace lockstep::nn
