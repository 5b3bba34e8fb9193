// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/nn/module.h"
#include "runtime/ops/recurrent.h"

// Cells of recurrent networks, PyTorch's RNNCell, GRUCell and LSTMCell, with their names of parameters: weight_ih,
// weight_hh, bias_ih, bias_hh, uniform within 1 / sqrt(hidden) at first. A forward pass without a state starts from
// zeros.

namespace lockstep::nn {

/// The base of the three cells.
class Cell : public Module {
 protected:
  Cell(std::int64_t gates, std::int64_t in, std::int64_t hidden, bool bias);
  /// Zeros [N, hidden] of x's device.
  Tensor zeros(const Tensor& x) const;

  ops::CellParameters parameters_;
  std::int64_t hidden_;
};

class RnnCell : public Cell {
 public:
  RnnCell(std::int64_t in, std::int64_t hidden, bool bias = true, ops::Activation activation = ops::Activation::kTanh);
  Tensor forward(const Tensor& x) override { return forward(x, zeros(x)); }
  Tensor forward(const Tensor& x, const Tensor& h);

 private:
  ops::Activation activation_;
};

class GruCell : public Cell {
 public:
  GruCell(std::int64_t in, std::int64_t hidden, bool bias = true) : Cell(3, in, hidden, bias) {}
  Tensor forward(const Tensor& x) override { return forward(x, zeros(x)); }
  Tensor forward(const Tensor& x, const Tensor& h);
};

class LstmCell : public Cell {
 public:
  LstmCell(std::int64_t in, std::int64_t hidden, bool bias = true) : Cell(4, in, hidden, bias) {}
  Tensor forward(const Tensor& x) override { return forward(x, {zeros(x), zeros(x)}).h; }
  ops::LstmState forward(const Tensor& x, const ops::LstmState& state);
};

}  // namespace lockstep::nn
