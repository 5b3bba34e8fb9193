// SPDX-License-Identifier: Apache-2.0
// Three ranks of which rank 1 trains something else. Every rank prints one line with what became of it.
#include <cstdio>
#include <memory>
#include <string>

#include "amp/grad_scaler/grad_scaler.h"
#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "comm/group/world.h"
#include "runtime/base/error.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/ops.h"
#include "runtime/optim/sgd.h"

namespace {

using namespace lockstep;

/// Two layers, of which the first may be left out.
class Net : public nn::Module {
 public:
  explicit Net(bool whole) : whole_(whole) {}
  Tensor forward(const Tensor& x) override { return last_.forward(whole_ ? first_.forward(x) : x); }

 private:
  bool whole_;
  nn::Linear& first_ = add_module<nn::Linear>("first", 4, 4);
  nn::Linear& last_ = add_module<nn::Linear>("last", 4, 2);
};

void train(comm::World& world, const std::string& scenario) {
  comm::DdpOptions options;
  const bool odd = world.rank() == 1;
  if (odd && scenario == "other_settings") options.gradient_predivide_factor = 2;
  Net net(!(odd && scenario == "missing_gradient"));
  if (odd && scenario == "other_frozen") net.parameters()[1].tensor.set_requires_grad(false);
  const std::unique_ptr<optim::Optimizer> optimizer = optim::sgd(net.parameters(), {.lr = 0.1});
  amp::initialize(net, *optimizer);
  comm::DistributedDataParallel ddp(net, world, options);
  amp::GradScaler scaler(world, {.growth_interval = odd && scenario == "other_scaler" ? 100u : 2000u});
  for (int step = 0; step < 2; ++step) {
    optimizer->zero_grad();
    const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {1, 4});
    ops::cross_entropy(ddp.forward(x), Tensor::from<std::int64_t>({1}, {1})).backward();
    optimizer->step();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int rank = -1;
  std::string outcome = "finished";
  try {
    comm::World world = comm::World::from_environment({.timeout = std::chrono::seconds(60)});
    rank = world.rank();
    train(world, argv[1]);
  } catch (const Error& error) {
    outcome = "code " + std::to_string(static_cast<int>(error.code())) + ": " + error.what();
  }
  std::printf("rank %d ended with %s\n", rank, outcome.c_str());
  return 0;
}
