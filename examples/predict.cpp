// SPDX-License-Identifier: Apache-2.0
// Predicts with a trained run: predict FOLDER trains one there, then uses what it left behind, with nothing of the
// training but the folder. Ends with 0 when the predictions are as good as the last evaluation.
#include <lockstep/lockstep.h>

#include <cmath>
#include <cstdio>

using namespace lockstep;

constexpr const char* kJob = R"(
data {
  global_batch: 32
  train { synthetic { samples: 512 shape: [6] classes: 3 } }
  eval { synthetic { samples: 96 shape: [6] classes: 3 } }
}
model { mlp { hidden: 32 } }
optimizer { adam { lr: 0.01 } }
train { steps: 60 eval_every: 60 }
)";

int main(int argc, char** argv) try {
  auto world = comm::World::from_environment();
  train::Trainer trainer(world, {.job = kJob, .run_dir = argc > 1 ? argv[1] : "predict-run", .quiet = true});
  const double expected = trainer.run().evaluation->metrics.front().value;
  if (world.rank() != 0) return 0;

  // From here on the folder is enough: on another machine, in another program, without the training data.
  train::Predictor predictor(argc > 1 ? argv[1] : "predict-run");
  auto data = data::make_dataset({.train = data::SyntheticOptions{.samples = 512, .shape = {6}, .classes = 3},
                                  .eval = data::SyntheticOptions{.samples = 96, .shape = {6}, .classes = 3}},
                                 data::Split::kEval);
  data::Loader loader(data, {.global_batch = 96, .shuffle = false});
  const data::Batch batch = loader.next();
  const Tensor probabilities = predictor.predict(batch.input);  // [96, 3]
  const Tensor right = ops::eq(ops::argmax(probabilities, -1), batch.target);
  const double accuracy = ops::mean(ops::cast(right, DType::kFloat32)).item(0);
  std::printf("%s: accuracy %.3f, evaluated %.3f\n", predictor.checkpoint().c_str(), accuracy, expected);
  return std::abs(accuracy - expected) < 1e-6 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
