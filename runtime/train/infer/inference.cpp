// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/inference.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/dealt_blocks.h"
#include "runtime/job/data_options.h"
#include "runtime/step/replicated.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/train/infer/answers.h"
#include "runtime/train/infer/deployed_model.h"
#include "runtime/train/infer/input_failures.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/infer/prepared_inputs.h"
#include "runtime/train/infer/whole_inference.h"
#include "runtime/train/loading.h"
#include "runtime/train/network.h"
#include "runtime/train/prediction.h"
#include "runtime/train/same_data.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

namespace {

data::DatasetPtr dataset_of(const job::Job& job, const SavedModel& saved, data::Split split) {
  if (split == data::Split::kEval && !job::evaluates(job.data())) {
    throw UsageError(
        "data.eval: the job names no evaluation data",
        "Add data { eval { ... } } or data { eval_share: 0.1 }, or predict the training data with --data train.");
  }
  data::DataOptions options = data_of(job, saved);
  options.augment = {};
  return data::make_dataset(options, split);
}

/// How a rank loads its blocks of the data: with threads, in their order, each block in one batch.
data::LoaderOptions loading_of(const job::Job& job, const comm::World& world, Device device) {
  data::LoaderOptions loading = evaluation_loader(job, world, device);
  loading.rank = 0;
  loading.world_size = 1;
  loading.errors = {};
  loading.input_dtype = DType::kFloat32;  // also what 16 bits are compared with
  return loading;
}

/// What the model was made for: the training data's classes. Samples may have other extents than those.
data::Description description_of(const job::Job& job, const SavedModel& saved, const data::Dataset& dataset,
                                 data::Split split) {
  const data::Description data = data::describe(dataset);
  if (split == data::Split::kTrain) return data;
  return data::as_trained(data, data::describe(data_of(job, saved), data::Split::kTrain));
}

/// The counts of a rank; sums over ranks do not depend on their number.
struct Counts {
  std::int64_t samples = 0;
  std::int64_t targets = 0;  ///< that count, of classes
  std::int64_t correct = 0;
  std::int64_t equal = 0;
  std::int64_t not_finite = 0;
  double largest_difference = 0;
};

bool all_finite(std::span<const float> row) {
  return std::ranges::all_of(row, [](float value) { return std::isfinite(value); });
}

/// The samples to predict, and what the model was made for.
struct Work {
  data::DatasetPtr dataset;
  data::Description description;
  std::shared_ptr<const data::Inputs> inputs = {};            ///< files, in place of a data set
  std::shared_ptr<const data::ReadableInputs> readable = {};  ///< where samples that cannot be read are passed over
};

Work work_of(const job::Job& job, const InferOptions& options) {
  if (options.inputs.empty()) {
    const data::DatasetPtr dataset = dataset_of(job, options.saved, options.split);
    Work work{.dataset = dataset, .description = description_of(job, options.saved, *dataset, options.split)};
    if (job::loader_options(job).errors.on_error == data::OnError::kSkip) {
      work.readable = std::make_shared<data::ReadableInputs>(dataset);
      work.dataset = work.readable;
    }
    return work;
  }
  const data::DataOptions data = known_data_of(job, options.saved);
  const PreparedInputs files = prepared_inputs(data, options.inputs);
  return {.dataset = files.readable,
          .description = data.prepared->trained,
          .inputs = files.inputs,
          .readable = files.readable};
}

class Inference {
 public:
  Inference(comm::World& world, const job::Job& job, const InferOptions& options)
      : communicator_(*world.communicator()),
        options_(options),
        work_(work_of(job, options)),
        dataset_(work_.dataset),
        task_(job.train(), work_.description),
        answers_(task_),
        predictions_{.shape = answers_.shape(), .kind = answers_.kind(), .values = {}},
        columns_(answers_.shape().numel()),
        block_(job.data().eval_batch()),
        loading_(loading_of(job, world, options.device)) {
    if (world.size() > 1) {
      const char* const name = work_.inputs                           ? "--input"
                               : options.split == data::Split::kTrain ? "data.train"
                                                                      : "data.eval";
      require_same_data([&] { return std::vector{data::digest_of(name, *dataset_)}; }, communicator_);
    }
    if (!options.out.empty()) require_prediction_shape(options.out, predictions_.shape);
    if (options.top > 0 && predictions_.kind != PredictionKind::kProbabilities) {
      throw UsageError("--top-k is for runs that tell a class a sample", "Leave it out.");
    }
    if (options.top > 0 && options.out.extension() == ".npy") {
      throw UsageError("--top-k is for lines of text; a .npy holds all probabilities",
                       "Choose .csv or .jsonl for --out.");
    }
    step::on_rank_zero(communicator_, [&] {
      if (!options.out.empty()) require_writable(options.out);
      const bool tells_names = options.text || options.out.extension() == ".csv" || options.out.extension() == ".jsonl";
      if (tells_names && predictions_.kind == PredictionKind::kProbabilities) {
        const auto& known = options.saved.preparation;
        predictions_.class_names = known ? known->class_names : data::class_names(job::data_options(job.data()).train);
      }
      predictions_.inputs = work_.inputs;
      predictions_.top = options.top;
      saved_ = find_checkpoint(options.saved.checkpoint);
      for (const std::string& notice : saved_.notices) spdlog::warn(notice);
    });
    dtype_ = inference_dtype(job, options.half);
    const auto deployed = [&](DType dtype) {
      return std::make_unique<DeployedModel>(job, task_, saved_, weights_of(options.saved.raw_weights), dtype,
                                             options.device, communicator_);
    };
    model_ = deployed(dtype_);
    if (options.half) float32_ = deployed(DType::kFloat32);
  }

  InferResult run() {
    const autograd::NoGrad no_grad;
    const auto mine = std::make_shared<data::DealtBlocks>(dataset_, block_, communicator_.rank(), communicator_.size());
    std::optional<data::Loader> blocks;
    if (mine->size() > 0) {
      loading_.steps = static_cast<std::uint64_t>(data::steps_per_epoch(mine->size(), block_, false));
      blocks.emplace(mine, loading_);
    }
    const std::int64_t rounds = data::steps_per_epoch(dataset_->size(), block_ * communicator_.size(), false);
    for (std::int64_t round = 0; round < rounds; ++round) {
      const Tensor rows = Tensor::zeros({block_, columns_}, DType::kFloat32);
      if (round < static_cast<std::int64_t>(loading_.steps)) predict(blocks->next(), rows);
      collect(rows);
    }
    if (communicator_.rank() == 0 && keeps()) {
      // The last blocks of the last round may hold fewer samples, or none.
      predictions_.values.resize(static_cast<std::size_t>(dataset_->size() * columns_));
    }
    if (work_.readable) gather_failures();
    step::on_rank_zero(communicator_, [&] {
      if (!options_.out.empty()) write_predictions(options_.out, predictions_);
      if (options_.text) text_ = text_of(predictions_, *options_.text);
    });
    return result();
  }

 private:
  void predict(const data::Batch& block, const Tensor& rows) {
    const std::vector<Tensor> inputs = block.to(options_.device).inputs();
    const Tensor output = model_->predict(inputs);
    const Tensor reference = float32_ ? float32_->predict(inputs) : Tensor();
    const auto columns = static_cast<std::size_t>(columns_);
    for (std::size_t i = 0; i < static_cast<std::size_t>(block.input.size(0)); ++i) {
      const auto row = rows.mutable_as<float>().subspan(i * columns, columns);
      const std::vector<float> numbers = answers_.numbers_of(output, i);
      answers_.write(numbers, row);
      ++counts_.samples;
      if (!all_finite(numbers)) ++counts_.not_finite;
      if (task_.classifies() && !work_.inputs) count(numbers, block.target, i);
      if (float32_) compare(numbers, answers_.numbers_of(reference, i));
    }
  }

  void count(std::span<const float> numbers, const Tensor& targets, std::size_t sample) {
    const auto size = static_cast<std::size_t>(targets.numel() / targets.size(0));
    const auto labels = targets.as<std::int64_t>().subspan(sample * size, size);
    answers_.for_each_position(numbers, [&](std::size_t i, auto position) {
      if (labels[i] == data::kIgnoredLabel) return;
      ++counts_.targets;
      if (class_of(position) == labels[i]) ++counts_.correct;
    });
  }

  void compare(std::span<const float> numbers, std::span<const float> expected) {
    if (task_.classifies()) {
      answers_.for_each_position(numbers, [&](std::size_t i, auto position) {
        if (class_of(position) == class_of(expected.subspan(i * position.size(), position.size()))) ++counts_.equal;
      });
    }
    for (std::size_t c = 0; c < numbers.size(); ++c) {
      const double difference = std::abs(static_cast<double>(numbers[c]) - static_cast<double>(expected[c]));
      if (difference > counts_.largest_difference) counts_.largest_difference = difference;
    }
  }

  /// Whether the predictions are asked for, not their sums alone.
  bool keeps() const { return !options_.out.empty() || options_.text.has_value(); }

  /// What the ranks could not read, and NaN in its place.
  void gather_failures() {
    predictions_.failures = failures_of_all(work_.readable->failures(), communicator_);
    if (predictions_.values.empty()) return;
    const float none = predictions_.kind == PredictionKind::kClasses ? -1.0f : std::nanf("");
    for (const auto& [index, error] : predictions_.failures) {
      std::ranges::fill_n(predictions_.values.begin() + index * columns_, columns_, none);
    }
  }

  /// The blocks of all ranks, in their order, to rank 0. Also keeps the ranks together.
  void collect(const Tensor& rows) {
    const Tensor all = Tensor::empty({communicator_.size() * block_, columns_}, DType::kFloat32);
    communicator_.all_gather(rows, all, Stream::calling_thread());
    if (communicator_.rank() != 0 || !keeps()) return;
    const auto values = all.as<float>();
    predictions_.values.insert(predictions_.values.end(), values.begin(), values.end());
  }

  Tensor reduced(const std::vector<double>& values, comm::ReduceOp op) {
    const Tensor tensor = Tensor::from(values, {static_cast<std::int64_t>(values.size())});
    communicator_.all_reduce(tensor, op, 1.0f, Stream::calling_thread());
    return tensor;
  }

  InferResult result() {
    const Tensor sums =
        reduced({static_cast<double>(counts_.samples), static_cast<double>(counts_.correct),
                 static_cast<double>(counts_.equal), static_cast<double>(counts_.not_finite), model_->samples_per_s(),
                 float32_ ? float32_->samples_per_s() : 0.0, static_cast<double>(counts_.targets)},
                comm::ReduceOp::kSum);
    const double difference = reduced({counts_.largest_difference}, comm::ReduceOp::kMax).item(0);
    const double samples = sums.item(0);
    InferResult result{.samples = static_cast<std::int64_t>(samples),
                       .dtype = dtype_,
                       .cost = {model_->weight_bytes(), sums.item(4)},
                       .accuracy = {},
                       .not_finite = static_cast<std::int64_t>(sums.item(3)),
                       .agreement = {},
                       .of_mean = !options_.saved.raw_weights && step::has_mean(saved_),
                       .checkpoint = saved_.path};
    result.failures = std::move(predictions_.failures);
    result.text = std::move(text_);
    if (task_.classifies() && !work_.inputs && sums.item(6) > 0) result.accuracy = sums.item(1) / sums.item(6);
    if (!float32_) return result;
    Agreement& agreement = result.agreement.emplace();
    // All positions, those without a label too.
    const double positions = samples * static_cast<double>(task_.model_input().target_shape.numel());
    if (task_.classifies()) agreement.equal_classes = sums.item(2) / positions;
    agreement.largest_difference = difference;
    agreement.float32 = {float32_->weight_bytes(), sums.item(5)};
    return result;
  }

  comm::Communicator& communicator_;
  const InferOptions& options_;
  Work work_;
  data::DatasetPtr dataset_;
  Task task_;
  Answers answers_;
  Predictions predictions_;  ///< on rank 0
  std::int64_t columns_;     ///< numbers of an answer
  std::string text_;         ///< on rank 0
  std::int64_t block_;
  data::LoaderOptions loading_;   ///< of this rank's blocks; without steps where it has none
  checkpoint::Checkpoint saved_;  ///< on rank 0
  DType dtype_ = DType::kFloat32;
  std::unique_ptr<DeployedModel> model_;
  std::unique_ptr<DeployedModel> float32_;  ///< to compare with
  Counts counts_;
};

/// Whether the options of windows are others than nobody asks for.
bool are_asked_for(const SlidingWindowOptions& windows) {
  const SlidingWindowOptions usual;
  return windows.overlap != usual.overlap || windows.weights != usual.weights;
}

}  // namespace

void require_destination(const job::Job& job, const InferOptions& options) {
  if (answers_wholes(job, options)) return require_answer_folder(options);
  if (are_asked_for(options.windows)) {
    throw UsageError("--overlap and --window-weights are for runs that answer volumes or images with --input",
                     "Leave them out.");
  }
  if (!options.out.empty()) require_prediction_format(options.out);
}

InferResult infer(comm::World& world, const job::Job& job, const InferOptions& options) {
  require_destination(job, options);
  if (answers_wholes(job, options)) return infer_wholes(world, job, options);
  return Inference(world, job, options).run();
}

}  // namespace lockstep::train
