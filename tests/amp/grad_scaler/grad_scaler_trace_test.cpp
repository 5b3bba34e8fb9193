// SPDX-License-Identifier: Apache-2.0
// 200 steps beside PyTorch's GradScaler: two optimizers, 14 overflows, a scale set by hand, saved and loaded half-way.
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/kernels/assign.h"
#include "tests/amp/grad_scaler/scaled_model.h"
#include "tests/support/source_folder.h"

namespace lockstep::amp {
namespace {

using amp::testing::device;
using amp::testing::scaler_with;
using nlohmann::json;

/// A weight that starts at 1, and its optimizer.
struct OneWeight {
  OneWeight() {
    const nn::Parameter parameter = net.parameters()[0];
    kernels::fill(parameter.tensor, 1.0);
    optimizer = optim::sgd({parameter}, {.lr = 0x1p-10});
    optimizer->attach(std::make_shared<nn::Arena>(net, nn::ArenaOptions{.device = device()}));
  }
  double value() const { return net.parameters()[0].tensor.item(); }
  void backward(GradScaler& scaler, bool finite) const {
    const float factor = finite ? 1.0f : std::numeric_limits<float>::infinity();
    const Tensor x = Tensor::from<float>({factor}, {1, 1}).to(device());
    scaler.scale(ops::sum(ops::mul(net.parameters()[0].tensor, x))).backward();
  }

  nn::Linear net{1, 1, false};
  std::unique_ptr<optim::Optimizer> optimizer;
};

TEST(ScalerTrace, IsPyTorchs) {
  const json trace = json::parse(std::ifstream(source_folder() + "/tests/golden/scaler.json"))["grad_scaler"]["trace"];
  GradScalerOptions options{.growth_interval = trace["options"]["growth_interval"], .max_consecutive_skips = 0};
  options.init = trace["options"]["init_scale"];
  std::optional<GradScaler> scaler(std::in_place, comm::make_self_communicator(device()), options);
  OneWeight models[2];
  ASSERT_EQ(trace["steps"].size(), 200u);
  std::size_t step = 0;
  for (const json& expected : trace["steps"]) {
    SCOPED_TRACE(step);
    if (step == trace["saved_after"].get<std::size_t>()) {
      const GradScalerState saved = scaler->state_dict();
      const GradScalerState theirs = grad_scaler_state_from_json(trace["saved"].get<std::string>());
      EXPECT_EQ(saved.scale, theirs.scale);
      EXPECT_EQ(saved.growth_tracker, theirs.growth_tracker);
      EXPECT_EQ(saved.growth_interval, theirs.growth_interval);
      options.init = 2;
      scaler.emplace(comm::make_self_communicator(device()), options);
      scaler->load_state_dict(grad_scaler_state_from_json(to_json(saved)));
    }
    const std::vector<int> overflows = expected["overflows"];
    for (int i = 0; i < 2; ++i) {
      models[i].optimizer->zero_grad();
      models[i].backward(*scaler, std::ranges::find(overflows, i) == overflows.end());
    }
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ((*scaler->step(*models[i].optimizer)).found_inf, expected["skipped"][i].get<float>());
    }
    if (step == trace["new_scale_at"].get<std::size_t>()) {
      scaler->update(trace["new_scale"].get<double>());
    } else {
      scaler->update();
    }
    EXPECT_EQ(scaler->get_scale(), expected["scale"].get<float>());
    EXPECT_EQ(scaler->growth_tracker(), expected["tracker"].get<std::uint32_t>());
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(models[i].value(), expected["weights"][i].get<double>());
    ++step;
  }
  EXPECT_EQ(scaler->state_dict().skipped_steps, 14u);
}

}  // namespace
}  // namespace lockstep::amp
