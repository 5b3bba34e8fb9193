// SPDX-License-Identifier: Apache-2.0
// A model and a data set of one's own: a residual network learns y = sin x. Ends with 0 when it has.
#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>
#include <memory>

using namespace lockstep;

/// Samples x in [-3, 3), targets sin x.
class Sine final : public data::Dataset {
 public:
  std::int64_t size() const override { return 512; }
  Shape sample_shape() const override { return {1}; }
  std::int64_t classes() const override { return 0; }  // regression
  Shape target_shape() const override { return {1}; }
  void get(const data::SampleKey& key, const data::Sample& sample) const override {
    sample.values[0] = 6.0f * static_cast<float>(key.index) / static_cast<float>(size()) - 3.0f;
    sample.target[0] = std::sin(sample.values[0]);
  }
};

class Residual final : public nn::Module {
 public:
  Residual()
      : in_(add_module<nn::Linear>("in", 1, 64)),
        middle_(add_module<nn::Linear>("middle", 64, 64)),
        out_(add_module<nn::Linear>("out", 64, 1)) {}
  Tensor forward(const Tensor& x) override {
    const Tensor hidden = ops::gelu(in_(x));
    return out_(ops::add(hidden, ops::gelu(middle_(hidden))));
  }

 private:
  nn::Linear& in_;
  nn::Linear& middle_;
  nn::Linear& out_;
};

int main() try {
  auto world = comm::World::from_environment();
  nn::manual_seed(1);
  Residual model;
  auto optimizer = optim::adam(model.parameters(), {.lr = 0.003});
  amp::initialize(model, *optimizer, {.opt_level = amp::OptLevel::kO1, .dtype = DType::kBFloat16});
  comm::DistributedDataParallel ddp(model, world);
  amp::GradScaler scaler(world, {.dynamic = false, .init = 1});  // bfloat16 needs no scale
  step::TrainingStep training(ddp, *optimizer, scaler, ops::mse);
  data::Loader loader(std::make_shared<Sine>(), {.global_batch = 64, .rank = world.rank(), .world_size = world.size()});
  for (int i = 0; i < 400; ++i) training.run(loader.next());
  const double loss = training.outcome().loss;
  std::printf("mean squared error %.5f\n", loss);
  return loss < 0.01 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
