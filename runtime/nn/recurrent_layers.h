// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/nn/layers.h"
#include "runtime/nn/module.h"
#include "runtime/ops/recurrent.h"

// Recurrent networks over sequences [N, T, in], PyTorch's RNN, GRU and LSTM with batch_first, with their names of
// parameters (weight_ih_l0, weight_hh_l0_reverse, ...), uniform within 1 / sqrt(hidden) at first.

namespace lockstep::nn {

struct RecurrentOptions {
  int layers = 1;              ///< each but the first reads the outputs of the one before
  bool bidirectional = false;  ///< a second network reads the sequence from its end on
  bool bias = true;
  double dropout = 0;  ///< between layers, while training
};

/// The state of each layer and direction, [layers * directions, N, hidden]: a layer's backward direction lies behind
/// its forward one. `c` is the LSTM's alone.
struct SequenceState {
  Tensor h;
  Tensor c;
};

struct SequenceOptions {
  /// int64 [N] on x's device: how many of the T elements of each sequence count, between 0 and T; undefined: all.
  /// Behind them outputs are 0, and a sequence's last state is that of its last element that counts.
  Tensor lengths = {};
  SequenceState state = {};  ///< to start from; undefined: zeros
};

struct SequenceOutput {
  Tensor y;             ///< [N, T, directions * hidden] of the last layer
  SequenceState state;  ///< behind the last element
};

/// The base of the three. Under autocast everything runs in the compute dtype, states included.
class RecurrentLayers : public Module {
 public:
  /// The outputs alone.
  Tensor forward(const Tensor& x) override { return forward(x, {}).y; }
  /// Throws ShapeError for x that is not [N, T, in] with T >= 1, and for lengths or a state that do not fit;
  /// UsageError for an LSTM's state without h or c, for another one's with c, and, on the CPU, for a length outside [0,
  /// T].
  SequenceOutput forward(const Tensor& x, const SequenceOptions& options);

 protected:
  /// Throws UsageError for options that make no network.
  RecurrentLayers(amp::Op op, int gates, std::int64_t in, std::int64_t hidden, const RecurrentOptions& options);

  /// One step of the cell on its input's part of the gates; c is undefined but for the LSTM's.
  virtual ops::LstmState step(const Tensor& of_x, const ops::LstmState& state,
                              const ops::CellParameters& parameters) const = 0;

 private:
  struct Direction {
    Tensor y;  ///< [N, T, hidden]
    ops::LstmState last;
  };
  /// Reads x [N, T, ...] in one direction, from a state on. `counts`: by time, which sequences have an element there;
  /// empty where all have.
  Direction read(const Tensor& x, bool backward, const std::vector<Tensor>& counts, ops::LstmState state,
                 const ops::CellParameters& parameters) const;
  void add_direction(std::int64_t in, int layer, bool backward, bool bias);
  bool has_c() const { return op_ == amp::Op::kLstmCell; }

  amp::Op op_;
  int gates_;
  std::int64_t hidden_;
  int layers_;
  int directions_;
  std::vector<ops::CellParameters> parameters_;  ///< by layer, then direction
  Dropout* dropout_ = nullptr;
};

class Rnn : public RecurrentLayers {
 public:
  Rnn(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {},
      ops::Activation activation = ops::Activation::kTanh)
      : RecurrentLayers(amp::Op::kRnnCell, 1, in, hidden, options), activation_(activation) {}

 private:
  ops::LstmState step(const Tensor& of_x, const ops::LstmState& state,
                      const ops::CellParameters& parameters) const override {
    return {ops::rnn_step(of_x, state.h, parameters, activation_), {}};
  }
  ops::Activation activation_;
};

class Gru : public RecurrentLayers {
 public:
  Gru(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {})
      : RecurrentLayers(amp::Op::kGruCell, 3, in, hidden, options) {}

 private:
  ops::LstmState step(const Tensor& of_x, const ops::LstmState& state,
                      const ops::CellParameters& parameters) const override {
    return {ops::gru_step(of_x, state.h, parameters), {}};
  }
};

class Lstm : public RecurrentLayers {
 public:
  Lstm(std::int64_t in, std::int64_t hidden, const RecurrentOptions& options = {})
      : RecurrentLayers(amp::Op::kLstmCell, 4, in, hidden, options) {}

 private:
  ops::LstmState step(const Tensor& of_x, const ops::LstmState& state,
                      const ops::CellParameters& parameters) const override {
    return ops::lstm_step(of_x, state, parameters);
  }
};

}  // namespace lockstep::nn
