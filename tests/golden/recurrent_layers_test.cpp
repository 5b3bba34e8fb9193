// SPDX-License-Identifier: Apache-2.0
#include "runtime/nn/recurrent_layers.h"

#include "runtime/autograd/engine.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

class GoldenRecurrentLayers : public GoldenTest {
 protected:
  /// Compares outputs, last states and all gradients of the network, which gets the case's parameters.
  void expect_layers(const std::string& name, nn::RecurrentLayers& layers) const {
    SCOPED_TRACE(name);
    const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
    const json& stored = golden("cells").at("layers").at(name);
    layers.to(device()).to(dtype());
    std::vector<Tensor> inputs{read(stored["x"])};
    const std::vector<nn::Parameter> parameters = layers.parameters();
    ASSERT_EQ(parameters.size(), stored["parameters"].size());
    for (const nn::Parameter& parameter : parameters) {
      const autograd::NoGrad no_grad;
      parameter.tensor.copy_from(read(stored["parameters"].at(parameter.name)));
      inputs.push_back(parameter.tensor);
    }
    inputs.front().set_requires_grad(true);
    nn::SequenceOptions options;
    if (stored.contains("lengths")) {
      const auto lengths = stored["lengths"].get<std::vector<std::int64_t>>();
      options.lengths = Tensor::from(lengths, {3}).to(device());
    }
    const nn::SequenceOutput found = layers.forward(inputs.front(), options);
    // Products over inputs, states and two biases, four times one after the other.
    const Sums sums{64};
    expect(found.y, stored["y"], sums);
    expect(found.state.h, stored["h"], sums);
    const Tensor dy = read(stored["dy"]), dh = read(stored["dh"]);
    Tensor loss = ops::sum(found.y * dy) + ops::sum(found.state.h * dh);
    if (stored.contains("c")) {
      expect(found.state.c, stored["c"], sums);
      loss = loss + ops::sum(found.state.c * dh);
    }
    const std::vector<Tensor> gradients = autograd::grad(loss, inputs);
    expect(gradients.front(), stored["dx"], sums);
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const std::string& parameter = parameters[i - 1].name;
      SCOPED_TRACE(parameter);
      expect(gradients[i], stored["gradients"].at(parameter), sums);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenRecurrentLayers, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenRecurrentLayers, ArePyTorchs) {
  nn::Rnn rnn(3, 2, {.layers = 2});
  expect_layers("rnn", rnn);
  nn::Gru gru(3, 2, {.layers = 2, .bidirectional = true});
  expect_layers("gru", gru);
  nn::Lstm lstm(3, 2, {.bias = false});
  expect_layers("lstm", lstm);
}

TEST_P(GoldenRecurrentLayers, OfLengthsArePyTorchsOfPackedSequences) {
  nn::Gru gru(3, 2, {.bidirectional = true});
  expect_layers("gru_of_lengths", gru);
  nn::Lstm lstm(3, 2, {.layers = 2, .bidirectional = true});
  expect_layers("lstm_of_lengths", lstm);
}

}  // namespace
}  // namespace lockstep::kernels
