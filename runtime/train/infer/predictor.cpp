// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/predictor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/job/training_options.h"
#include "runtime/train/infer/answers.h"
#include "runtime/train/infer/prepared_inputs.h"
#include "runtime/train/infer/restored_model.h"
#include "runtime/train/infer/trained_run.h"

namespace lockstep::train {

namespace {

std::string shapes_text(std::span<const Tensor> tensors) {
  std::vector<std::string> shapes;
  for (const Tensor& tensor : tensors) shapes.push_back(tensor.shape().str());
  return fmt::format("{}", fmt::join(shapes, " and "));
}

}  // namespace

struct Predictor::Deployed {
  Deployed(const TrainedRun& run, const PredictorOptions& options)
      : data(known_data_of(run.checked.job, run.saved)),
        restored(restored_model(run.checked.job, run.saved)),
        answers(restored.task),
        device(options.device),
        loading(job::loader_options(run.checked.job)) {
    restored.model->to(device).to(inference_dtype(run.checked.job, options.half)).train(false);
    loading.global_batch = run.checked.job.data().eval_batch();
    loading.accumulate = 1;
    loading.shuffle = false;
    loading.drop_last = false;
    loading.errors = {};
    loading.device = device;
    loading.input_dtype = DType::kFloat32;
  }

  data::DataOptions data;
  RestoredModel restored;
  Answers answers;
  Device device;
  data::LoaderOptions loading;
};

Predictor::Predictor(const std::filesystem::path& run, const PredictorOptions& options) {
  TrainedRun trained = open_run(run, options.latest, {});
  trained.saved.raw_weights = options.raw_weights;
  deployed_ = std::make_unique<Deployed>(trained, options);
}

Predictor::Predictor(const TrainedRun& run, const PredictorOptions& options)
    : deployed_(std::make_unique<Deployed>(run, options)) {}

Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;
Predictor& Predictor::operator=(Predictor&&) noexcept = default;

PredictionKind Predictor::kind() const { return deployed_->answers.kind(); }
const Shape& Predictor::shape() const { return deployed_->answers.shape(); }
const std::vector<std::string>& Predictor::class_names() const { return deployed_->data.prepared->class_names; }
const Shape& Predictor::sample_shape() const { return deployed_->data.prepared->trained.sample_shape; }
std::vector<InputSpec> Predictor::inputs() const { return deployed_->data.prepared->trained.inputs(); }
const std::string& Predictor::checkpoint() const { return deployed_->restored.checkpoint; }

PredictionLine Predictor::line(TextFormat format, std::int64_t top) const {
  return {.format = format,
          .kind = kind(),
          .numbers = shape().numel(),
          .class_names = class_names(),
          .top = top,
          .of_inputs = true,
          .row_title = std::string(data::row_title_of(deployed_->data))};
}

Tensor Predictor::predict(std::span<const Tensor> samples) {
  const std::vector<InputSpec> specs = inputs();
  bool fits = samples.size() == specs.size();
  for (std::size_t i = 0; fits && i < specs.size(); ++i) {
    const auto extents = samples[i].shape().extents();
    fits = !extents.empty() && extents.front() == samples[0].shape()[0] &&
           std::ranges::equal(extents.subspan(1), specs[i].shape.extents());
  }
  if (!fits) {
    throw ShapeError(fmt::format("a Predictor of samples {} was given {}; expected a batch of such samples",
                                 deployed_->data.prepared->trained.inputs_text(), shapes_text(samples)));
  }
  const autograd::NoGrad no_grad;
  std::vector<Tensor> there;
  for (const Tensor& input : samples) there.push_back(input.to(deployed_->device));
  const Tensor output = deployed_->restored.model->forward(std::span<const Tensor>(there)).to(kCpu);
  const std::int64_t count = samples[0].size(0);
  const Shape& shape = deployed_->answers.shape();
  std::vector<std::int64_t> all(shape.extents().begin(), shape.extents().end());
  all.insert(all.begin(), count);
  const Tensor predictions = Tensor::empty(Shape(std::span<const std::int64_t>(all)), DType::kFloat32);
  const auto columns = static_cast<std::size_t>(shape.numel());
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    deployed_->answers.write(deployed_->answers.numbers_of(output, i),
                             predictions.mutable_as<float>().subspan(i * columns, columns));
  }
  return predictions;
}

std::vector<Prediction> Predictor::predict(std::span<const std::string> paths) {
  return predict_prepared(prepared_inputs(deployed_->data, paths));
}

bool Predictor::takes_lines() const { return data::takes_lines(deployed_->data); }

bool Predictor::names_columns() const {
  const auto& table = deployed_->data.prepared->table;
  return table && table->header;
}

std::vector<Prediction> Predictor::predict_lines(std::string lines) {
  return predict_prepared(prepared(deployed_->data, data::lines_as_inputs(deployed_->data, std::move(lines))));
}

std::vector<Prediction> Predictor::predict_prepared(const PreparedInputs& prepared) {
  const std::int64_t size = prepared.readable->size();
  std::vector<Prediction> predictions;
  if (size == 0) return predictions;
  data::LoaderOptions loading = deployed_->loading;
  loading.steps = static_cast<std::uint64_t>(data::steps_per_epoch(size, loading.global_batch, false));
  data::Loader loader(prepared.readable, loading);
  const auto columns = static_cast<std::size_t>(shape().numel());
  for (std::uint64_t step = 0; step < loading.steps; ++step) {
    const data::Batch batch = loader.next();
    const Tensor rows = predict(batch.inputs());
    for (std::size_t i = 0; i < static_cast<std::size_t>(rows.size(0)); ++i) {
      const auto row = rows.as<float>().subspan(i * columns, columns);
      predictions.push_back(
          {.place = prepared.inputs->place(std::ssize(predictions)), .numbers = {row.begin(), row.end()}, .error = {}});
    }
  }
  for (const auto& [index, error] : prepared.readable->failures()) {
    predictions[static_cast<std::size_t>(index)].error = error;
    predictions[static_cast<std::size_t>(index)].numbers.clear();
  }
  return predictions;
}

}  // namespace lockstep::train
