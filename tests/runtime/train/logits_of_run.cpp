// SPDX-License-Identifier: Apache-2.0
// train_logits JOB RUN SAMPLES.npy LOGITS.npy: what a run's newest weights answer, in float32. Where infer writes the
// class of each position alone, tests compare the logits of language models with it. Samples are tokens, int64, or
// images, channels last, as the model takes them.
#include <spdlog/spdlog.h>

#include <exception>
#include <span>
#include <string>
#include <vector>

#include "runtime/autograd/grad_mode.h"
#include "runtime/data/formats/npy.h"
#include "runtime/job/job.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/infer/restored_model.h"

namespace lockstep::train {
namespace {

Tensor samples_in(const std::string& path) {
  const data::NpyArray array(path);
  const Shape shape(std::span<const std::int64_t>(array.extents()));
  if (array.kind() != data::NpyArray::Kind::kFloat) {
    std::vector<std::int64_t> tokens(static_cast<std::size_t>(array.numel()));
    array.read(0, std::span(tokens));
    return Tensor::from(tokens, shape);
  }
  std::vector<float> values(static_cast<std::size_t>(array.numel()));
  array.read(0, std::span(values));
  return Tensor::from(values, shape);
}

void run(const std::string& job, const std::string& directory, const std::string& samples, const std::string& out) {
  const RestoredModel restored = restored_model(job::load(job), {.checkpoint = directory});
  const autograd::NoGrad no_grad;
  restored.model->train(false);
  const Tensor logits = restored.model->forward(samples_in(samples));
  const std::span<const float> values = logits.as<float>();
  write_predictions(out, {.shape = Shape(logits.shape().extents().subspan(1)),
                          .kind = PredictionKind::kValues,
                          .values = {values.begin(), values.end()}});
}

}  // namespace
}  // namespace lockstep::train

int main(int argc, char** argv) try {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() != 4) throw std::invalid_argument("expected JOB RUN SAMPLES.npy LOGITS.npy");
  lockstep::train::run(arguments[0], arguments[1], arguments[2], arguments[3]);
  return 0;
} catch (const std::exception& error) {
  spdlog::error(error.what());
  return 1;
}
