// SPDX-License-Identifier: Apache-2.0
#include "runtime/autograd/engine.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/recurrent.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

class GoldenCells : public GoldenTest {
 protected:
  /// Runs run(x, h, c, parameters) for each case, and compares its result and all gradients.
  template <class Run>
  void expect_cells(const std::string& group, Run run) const {
    const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
    for (const auto& [name, stored] : golden("cells").at(group).items()) {
      SCOPED_TRACE(group + "." + name);
      std::vector<Tensor> inputs;
      std::vector<std::string> names;
      const auto leaf = [&, &stored = stored](const char* of) {
        if (!stored.contains(of)) return Tensor();
        inputs.push_back(read(stored[of]));
        inputs.back().set_requires_grad(true);
        names.push_back(of);
        return inputs.back();
      };
      const Tensor x = leaf("x"), h = leaf("h"), c = leaf("c");
      ops::CellParameters parameters;
      parameters.weight_ih = leaf("weight_ih");
      parameters.weight_hh = leaf("weight_hh");
      parameters.bias_ih = leaf("bias_ih");
      parameters.bias_hh = leaf("bias_hh");
      const Tensor y = run(name, x, h, c, parameters);
      // Products over the input and the state, and two biases.
      const Sums sums{x.size(1) + h.size(1) + 2};
      expect(y, stored["y"], sums);
      const std::vector<Tensor> gradients = autograd::grad(y, inputs, read(stored["dy"]));
      for (std::size_t i = 0; i < names.size(); ++i) {
        SCOPED_TRACE(names[i]);
        expect(gradients[i], stored["d" + names[i]], sums);
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenCells, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenCells, RnnIsPyTorchs) {
  expect_cells("rnn", [](const std::string& name, const Tensor& x, const Tensor& h, const Tensor&, const auto& with) {
    const Activation activation = name == "relu" ? Activation::kRelu : Activation::kTanh;
    return ops::rnn_cell(x, ops::rnn_cell(x, h, with, activation), with, activation);
  });
}

TEST_P(GoldenCells, GruIsPyTorchs) {
  expect_cells("gru", [](const std::string&, const Tensor& x, const Tensor& h, const Tensor&, const auto& with) {
    return ops::gru_cell(x, ops::gru_cell(x, h, with), with);
  });
}

TEST_P(GoldenCells, LstmIsPyTorchs) {
  expect_cells("lstm", [](const std::string&, const Tensor& x, const Tensor& h, const Tensor& c, const auto& with) {
    const ops::LstmState state = ops::lstm_cell(x, ops::lstm_cell(x, {h, c}, with), with);
    return ops::add(state.h, state.c);
  });
}

}  // namespace
}  // namespace lockstep::kernels
