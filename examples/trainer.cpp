// SPDX-License-Identifier: Apache-2.0
// A run as `lockstep train` makes it, within a program: a network learns y = sin x. Started as trainer RUN, or as
// mpirun -n 2 trainer RUN; started again, it goes on where it was.
#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>
#include <memory>

using namespace lockstep;

/// Samples x in [-3, 3), targets sin x.
class Sine final : public data::Dataset {
 public:
  explicit Sine(std::int64_t samples) : samples_(samples) {}
  std::int64_t size() const override { return samples_; }
  Shape sample_shape() const override { return {1}; }
  std::int64_t classes() const override { return 0; }  // regression
  Shape target_shape() const override { return {1}; }
  void get(const data::SampleKey& key, const data::Sample& sample) const override {
    sample.values[0] = 6.0f * static_cast<float>(key.index) / static_cast<float>(samples_) - 3.0f;
    sample.target[0] = std::sin(sample.values[0]);
  }

 private:
  std::int64_t samples_;
};

/// Ends the run once it is good enough.
class GoodEnough final : public train::RunObserver {
 public:
  explicit GoodEnough(train::Trainer& trainer) : trainer_(trainer) {}
  void evaluation(std::uint64_t /*step*/, const train::EvalResult& result) override {
    if (result.loss < 0.01) trainer_.end();
  }

 private:
  train::Trainer& trainer_;
};

int main(int argc, char** argv) try {
  auto world = comm::World::from_environment();
  train::Trainer trainer(world, {.job = "data { global_batch: 64 } optimizer { adam { lr: 0.003 } } "
                                        "amp { opt_level: O1 dtype: BF16 } train { steps: 2000 eval_every: 50 }",
                                 .run_dir = argc > 1 ? argv[1] : "run",
                                 .model =
                                     [](const model_zoo::ModelInput& input) {
                                       return model_zoo::build(model_zoo::MlpOptions{.hidden = {64, 64}}, input, 1);
                                     },
                                 .train_data = std::make_shared<Sine>(512),
                                 .eval_data = std::make_shared<Sine>(100),
                                 .loss = ops::mse});
  GoodEnough good_enough(trainer);
  trainer.observe(good_enough);
  const train::TrainerResult result = trainer.run();
  return result.code == ExitCode::kDone && result.evaluation->loss < 0.01 ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "%s\n%s\n", error.what(), error.advice().c_str());
  return static_cast<int>(error.code());
}
