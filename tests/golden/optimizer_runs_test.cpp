// SPDX-License-Identifier: Apache-2.0
// Twenty steps of each optimizer as a job names it, weights and state behind each, beside PyTorch's or, where PyTorch
// has none, the papers' and Apex's formulas. families/optimizers.py says which parameters have no gradient when.
#include <google/protobuf/text_format.h>

#include <cmath>

#include "configs/job.pb.h"
#include "runtime/autograd/engine.h"
#include "runtime/job/training_options.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

job::Optimizer job_of(const std::string& text) {
  job::Optimizer optimizer;
  if (!google::protobuf::TextFormat::ParseFromString(text, &optimizer)) throw UsageError("no optimizer: " + text);
  return optimizer;
}

/// A number within 2 ulp of float32 a step, of the largest that it has been.
class Followed {
 public:
  void expect(double found, double expected, int step) {
    largest_ = std::max(largest_, std::abs(expected));
    EXPECT_NEAR(found, expected, 2.0 * step * std::numeric_limits<float>::epsilon() * largest_);
  }

 private:
  double largest_ = 0;
};

class GoldenRuns : public GoldenTest {
 protected:
  void SetUp() override {
    GoldenTest::SetUp();
    if (IsSkipped()) return;
    if (device() == kCpu) scope_.emplace(backend());
    net_.add<nn::Linear>("kept", 2, 3);
    net_.add<nn::Linear>("late", 2, 2);
    parameters_ = net_.parameters();
  }

  void follow(const json& stored) {
    const auto optimizer = job::make_optimizer(job_of(stored["job"]), parameters_);
    const auto arena = std::make_shared<nn::Arena>(net_, nn::ArenaOptions{.device = device()});
    optimizer->attach(arena);
    const json& start = golden("optimizers")["start"];
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      parameters_[i].tensor.copy_from(numbers(start["weights"][i], parameters_[i].tensor.shape()));
    }
    std::map<std::string, Followed> followed;
    parameters_[2].tensor.set_requires_grad(false);
    for (int step = 1; step <= 20; ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      if (step == 10) parameters_[2].tensor.set_requires_grad(true);
      optimizer->zero_grad();
      for (std::size_t i = 0; i < parameters_.size(); ++i) {
        const Tensor& parameter = parameters_[i].tensor;
        if ((i == 1 && step == 5) || !parameter.requires_grad()) continue;
        const Tensor gradient =
            numbers(start["gradients"][static_cast<std::size_t>(step) - 1][i], parameter.shape()).to(device());
        ops::sum(ops::scale(ops::mul(parameter, gradient), kScale)).backward();
      }
      optimizer->check_gradients();
      optimizer->step(1.0f / kScale, 0.0f);
      compare(*optimizer, stored["steps"][static_cast<std::size_t>(step) - 1], step, followed);
    }
  }

 private:
  static constexpr float kScale = 64;

  static Tensor numbers(const json& stored, const Shape& shape) {
    return testing::tensor_of(stored.get<std::vector<double>>(), shape, DType::kFloat32);
  }

  void compare(const optim::Optimizer& optimizer, const json& expected, int step,
               std::map<std::string, Followed>& followed) const {
    const nn::Arena& arena = optimizer.arena();
    const auto expect = [&](const std::string& name, const Tensor& found, const json& values) {
      SCOPED_TRACE(name);
      const std::vector<double> all = testing::values_of(found);
      ASSERT_EQ(all.size(), values.size());
      for (std::size_t k = 0; k < all.size(); ++k) {
        followed[name + "[" + std::to_string(k) + "]"].expect(all[k], values[k], step);
      }
    };
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      // The arena's order is the reverse.
      const std::size_t number = parameters_.size() - 1 - i;
      const nn::Arena::Slot& slot = arena.slots()[number];
      const auto row = static_cast<std::int64_t>(number);
      const json& state = expected["state"][i];
      expect(slot.parameter.name, arena.masters().rows(slot.begin, slot.end), expected["weights"][i]);
      for (const auto& [name, flat] : optimizer.state()) {
        expect(slot.parameter.name + "." + name, flat.rows(slot.begin, slot.end), state.at(name));
      }
      for (const auto& [name, all] : optimizer.parameter_state()) {
        expect(slot.parameter.name + "." + name, all.rows(row, row + 1), state.at(name));
      }
      EXPECT_EQ(state.size(), optimizer.state().size() + optimizer.parameter_state().size());
    }
  }

  std::optional<ScopedBackend> scope_;
  nn::Sequential net_;
  std::vector<nn::Parameter> parameters_;
};

std::vector<std::string> names_of_runs() {
  std::vector<std::string> names;
  for (const auto& [name, stored] : golden("optimizers").at("runs").items()) names.push_back(name);
  return names;
}

TEST_P(GoldenRuns, StayWithinTwoUlpAStep) {
  for (const std::string& name : names_of_runs()) {
    SCOPED_TRACE(name);
    follow(golden("optimizers")["runs"][name]);
    if (HasFailure()) return;
  }
}
INSTANTIATE_TEST_SUITE_P(Optimizers, GoldenRuns, ::testing::ValuesIn(kComputers), name_of_computer);

}  // namespace
}  // namespace lockstep::kernels
