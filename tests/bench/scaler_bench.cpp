// SPDX-License-Identifier: Apache-2.0
// What dynamic loss scaling, unscale_() and clip_grad_norm_() add to a step in float16, beside the same step with a
// static scale of 1 and no clipping:
//   OMP_NUM_THREADS=1 build/release/bin/scaler_bench [ROUNDS]
// The two take turns, and a line for each model says the medians and the median of the rounds' ratios.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "amp/grad_scaler/grad_scaler.h"
#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "comm/group/world.h"
#include "model_zoo/build.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/clip.h"
#include "runtime/optim/sgd.h"
#include "tests/bench/stopwatch.h"

namespace {

using namespace lockstep;

struct Workload {
  std::string name;
  model_zoo::ModelOptions model;
  Shape sample;
  std::int64_t classes;
  std::int64_t batch;
};

/// A user's loop on one batch.
class Loop {
 public:
  Loop(comm::World& world, const Workload& workload, bool scaled)
      : scaled_(scaled),
        model_(model_zoo::build(workload.model, {workload.sample, workload.classes}, 1)),
        optimizer_(optim::sgd(model_->parameters(), {.lr = 1e-4, .momentum = 0.9})) {
    amp::initialize(*model_, *optimizer_, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kFloat16});
    ddp_ = std::make_unique<comm::DistributedDataParallel>(*model_, world);
    const amp::GradScalerOptions options =
        scaled ? amp::GradScalerOptions{.init = 1024} : amp::GradScalerOptions{.dynamic = false, .init = 1};
    scaler_ = std::make_unique<amp::GradScaler>(world, options);
    std::vector<std::int64_t> extents{workload.batch};
    for (int d = 0; d < workload.sample.rank(); ++d) extents.push_back(workload.sample[d]);
    input_ = ops::normal(Shape(extents), {.seed = 1});
    std::vector<std::int64_t> classes;
    for (std::int64_t i = 0; i < workload.batch; ++i) classes.push_back(i % workload.classes);
    target_ = Tensor::from(classes, {workload.batch});
  }

  double milliseconds_of_a_step() {
    const auto begin = std::chrono::steady_clock::now();
    optimizer_->zero_grad();
    scaler_->scale(ops::cross_entropy(ddp_->forward(input_), target_)).backward();
    if (scaled_) {
      scaler_->unscale_(*optimizer_);
      optim::clip_grad_norm_(model_->parameters(), 1.0);
    }
    scaler_->step(*optimizer_);
    scaler_->update();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  bool scaled_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::unique_ptr<comm::DistributedDataParallel> ddp_;
  std::unique_ptr<amp::GradScaler> scaler_;
  Tensor input_, target_;
};

void measure(comm::World& world, const Workload& workload, int rounds) {
  Loop plain(world, workload, false), scaled(world, workload, true);
  for (int i = 0; i < 3; ++i) {
    plain.milliseconds_of_a_step();
    scaled.milliseconds_of_a_step();
  }
  std::vector<double> without, with, ratios;
  for (int i = 0; i < rounds; ++i) {
    without.push_back(plain.milliseconds_of_a_step());
    with.push_back(scaled.milliseconds_of_a_step());
    ratios.push_back(with.back() / without.back());
  }
  std::printf("%-16s without %8.3f ms, with %8.3f ms, ratio %.3f\n", workload.name.c_str(), bench::median(without),
              bench::median(with), bench::median(ratios));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 50;
  auto world = comm::World::from_environment();
  const model_zoo::ConvnetOptions digits{.blocks = {{.channels = 32}, {.channels = 64, .stride = 2}}, .dropout = 0.2};
  measure(world, {"digits_convnet", digits, {8, 8, 1}, 10, 64}, rounds);
  measure(world, {"mlp_512x1024x3", model_zoo::MlpOptions{.hidden = {1024, 1024}}, {1024}, 1024, 512}, rounds);
  return 0;
} catch (const Error& error) {
  std::fprintf(stderr, "scaler_bench: %s\n", error.what());
  return static_cast<int>(error.code());
}
