// SPDX-License-Identifier: Apache-2.0
// Training at the opt levels, beside PyTorch's.
#include <cmath>

#include "amp/grad_scaler/grad_scaler.h"
#include "amp/grad_scaler/opt_level.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/sgd.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep {
namespace {

using kernels::golden;
using kernels::json;
using kernels::tensor_in;
using lockstep::devices::device;

/// The model of families/levels.py, with its weights.
class Convnet : public nn::Module {
 public:
  Tensor forward(const Tensor& x) override {
    const Tensor hidden = norm0_.forward(conv0_.forward(x));
    return output_.forward(ops::flatten(norm1_.forward(conv1_.forward(hidden))));
  }

  void load(const json& weights) {
    for (const nn::Parameter& parameter : parameters()) {
      parameter.tensor.copy_from(tensor_in(weights.at(parameter.name), DType::kFloat32));
    }
  }

 private:
  static nn::ConvOptions conv(std::int64_t stride) {
    nn::ConvOptions options{.bias = false};
    options.geometry.spatial_rank = 2;
    for (std::size_t d = 0; d < 2; ++d) {
      options.geometry.stride[d] = stride;
      options.geometry.padding[d] = 1;
    }
    return options;
  }

  nn::Conv& conv0_ = add_module<nn::Conv>("conv0", 1, 4, conv(1));
  nn::BatchNorm& norm0_ = add_module<nn::BatchNorm>("norm0", 4, nn::BatchNormOptions{.relu = true});
  nn::Conv& conv1_ = add_module<nn::Conv>("conv1", 4, 8, conv(2));
  nn::BatchNorm& norm1_ = add_module<nn::BatchNorm>("norm1", 8, nn::BatchNormOptions{.relu = true});
  nn::Linear& output_ = add_module<nn::Linear>("output", 8 * 4 * 4, 5);
};

std::vector<double> losses(amp::OptLevel level) {
  const json& start = golden("levels").at("start").at("convnet");
  Convnet model;
  nn::initialize(model, 1);
  model.load(start.at("weights"));
  const auto optimizer = optim::sgd(model.parameters(), {.lr = start.at("lr"), .momentum = start.at("momentum")});
  amp::initialize(model, *optimizer, {.opt_level = level}, device());
  const double scale = level == amp::OptLevel::kO0 ? 1.0 : start.at("scale").get<double>();
  amp::GradScaler scaler(comm::make_self_communicator(device()), {.dynamic = false, .init = scale});
  const Tensor images = tensor_in(start.at("images"), DType::kFloat32);
  const Tensor classes = tensor_in(start.at("classes"), DType::kInt64);
  std::vector<double> losses;
  for (int step = 0; step < 30; ++step) {
    const std::int64_t at = step % 2;
    const Tensor x = images.rows(at, at + 1).reshaped({images.size(1), 8, 8, 1}).to(device());
    const Tensor wanted = classes.rows(at, at + 1).reshaped({images.size(1)}).to(device());
    optimizer->zero_grad();
    const Tensor loss = ops::cross_entropy(nn::forward(model, x), wanted);
    losses.push_back(loss.item());
    scaler.scale(loss).backward();
    scaler.step(*optimizer);
    scaler.update();
  }
  return losses;
}

void expect_losses(amp::OptLevel level, const char* name, double bound) {
  const std::vector<double> expected = golden("levels").at("losses").at(name).get<std::vector<double>>();
  const std::vector<double> found = losses(level);
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], bound) << "step " << i;
  // The first one comes before any update; without the level's roundings it is 9e-6 away.
  EXPECT_NEAR(found[0], expected[0], 1e-6);
}

TEST(GoldenLevels, O0TrainsAsPyTorchInFloat32) { expect_losses(amp::OptLevel::kO0, "O0", 1e-5); }
TEST(GoldenLevels, O1TrainsAsPyTorchsAutocast) { expect_losses(amp::OptLevel::kO1, "O1", std::ldexp(1.0, -8)); }
TEST(GoldenLevels, O2TrainsAsApexDoes) { expect_losses(amp::OptLevel::kO2, "O2", std::ldexp(1.0, -8)); }

}  // namespace
}  // namespace lockstep
