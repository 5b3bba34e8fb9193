// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/inference.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/dealt_blocks.h"
#include "runtime/job/data_options.h"
#include "runtime/job/training_options.h"
#include "runtime/nn/forward.h"
#include "runtime/step/replicated.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/loading.h"
#include "runtime/train/network.h"
#include "runtime/train/prediction.h"
#include "runtime/train/same_data.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

namespace {

data::DatasetPtr dataset_of(const job::Job& job, data::Split split) {
  if (split == data::Split::kEval && !job.data().has_eval()) {
    throw UsageError("data.eval: the job names no evaluation data",
                     "Add data { eval { ... } }, or predict the training data with --data train.");
  }
  data::DataOptions options = job::data_options(job.data());
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
data::Description description_of(const job::Job& job, const data::Dataset& dataset, data::Split split) {
  const data::Description data = data::describe(dataset);
  if (split == data::Split::kTrain) return data;
  return data::as_trained(data, data::describe(job::data_options(job.data()), data::Split::kTrain));
}

PredictionKind kind_of(const Task& task) {
  if (task.learns_masks()) return PredictionKind::kMask;
  if (!task.classifies()) return PredictionKind::kValues;
  return task.model_input().target_shape.rank() == 0 ? PredictionKind::kProbabilities : PredictionKind::kClasses;
}

/// A model that is not trained, with the weights of rank 0's checkpoint.
class Deployed {
 public:
  Deployed(const job::Job& job, const Task& task, const checkpoint::Checkpoint& saved, step::Weights weights,
           DType dtype, Device device, comm::Communicator& communicator)
      : model_(build_model(job, task)) {
    step::on_rank_zero(communicator,
                       [&] { restore_for(job, saved, [&] { step::restore_model(*model_, saved, weights); }); });
    const auto share = [&](const Tensor& tensor) { communicator.broadcast(tensor, 0, Stream::calling_thread()); };
    for (const nn::Parameter& parameter : model_->parameters()) share(parameter.tensor.detach());
    for (const auto& [name, statistics] : model_->statistics()) share(statistics->committed());
    model_->to(device).to(dtype).train(false);
  }

  std::int64_t weight_bytes() const {
    std::int64_t bytes = 0;
    for (const nn::Parameter& parameter : model_->parameters()) {
      bytes += static_cast<std::int64_t>(parameter.tensor.bytes());
    }
    return bytes;
  }

  /// float32 on the CPU; waits for it.
  Tensor predict(std::span<const Tensor> inputs) {
    const auto begin = std::chrono::steady_clock::now();
    const Tensor output = nn::forward(*model_, inputs).to(kCpu);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    // The first pass takes memory and chooses kernels: it counts only where there is no other.
    if (++passes_ == 2) samples_ = seconds_ = 0;
    samples_ += static_cast<double>(inputs.front().size(0));
    seconds_ += time.count();
    return output;
  }

  double samples_per_s() const { return seconds_ > 0 ? samples_ / seconds_ : 0.0; }

 private:
  std::unique_ptr<nn::Module> model_;
  int passes_ = 0;
  double samples_ = 0;
  double seconds_ = 0;
};

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

class Inference {
 public:
  Inference(comm::World& world, const job::Job& job, const InferOptions& options)
      : communicator_(*world.communicator()),
        options_(options),
        dataset_(dataset_of(job, options.split)),
        task_(job.train(), description_of(job, *dataset_, options.split)),
        predictions_{.shape = task_.model_input().target_shape, .kind = kind_of(task_), .values = {}},
        block_(job.data().eval_batch()),
        loading_(loading_of(job, world, options.device)) {
    if (predictions_.kind == PredictionKind::kProbabilities) predictions_.shape = {task_.model_input().outputs};
    columns_ = predictions_.shape.numel();
    if (world.size() > 1) {
      const char* const name = options.split == data::Split::kTrain ? "data.train" : "data.eval";
      require_same_data([&] { return std::vector{data::digest_of(name, *dataset_)}; }, communicator_);
    }
    if (!options.out.empty()) require_prediction_shape(options.out, predictions_.shape);
    step::on_rank_zero(communicator_, [&] {
      if (!options.out.empty()) require_writable(options.out);
      const bool tells_names = options.out.extension() == ".csv" || options.out.extension() == ".jsonl";
      if (tells_names && predictions_.kind == PredictionKind::kProbabilities) {
        predictions_.class_names = data::class_names(job::data_options(job.data()).train);
      }
      saved_ = find_checkpoint(options.checkpoint);
      for (const std::string& notice : saved_.notices) spdlog::warn(notice);
    });
    const DType compute = job::amp_options(job.amp()).dtype.value_or(DType::kFloat32);
    if (options.half) dtype_ = is_reduced(compute) ? compute : DType::kFloat16;
    const auto deployed = [&](DType dtype) {
      return std::make_unique<Deployed>(job, task_, saved_, weights_of(options.raw_weights), dtype, options.device,
                                        communicator_);
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
    if (communicator_.rank() == 0 && !options_.out.empty()) {
      // The last blocks of the last round may hold fewer samples, or none.
      predictions_.values.resize(static_cast<std::size_t>(dataset_->size() * columns_));
    }
    step::on_rank_zero(communicator_, [&] {
      if (!options_.out.empty()) write_predictions(options_.out, predictions_);
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
      const std::vector<float> numbers = numbers_of(output, i);
      answer(numbers, row);
      ++counts_.samples;
      if (!all_finite(numbers)) ++counts_.not_finite;
      if (task_.classifies()) count(numbers, block.target, i);
      if (float32_) compare(numbers, numbers_of(reference, i));
    }
  }

  /// The prediction for a sample: probabilities of classes, a class after the other of each position, or values.
  std::vector<float> numbers_of(const Tensor& output, std::size_t sample) const {
    const auto size = static_cast<std::size_t>(output.numel() / output.size(0));
    const auto of_sample = output.as<float>().subspan(sample * size, size);
    std::vector<float> numbers(of_sample.begin(), of_sample.end());
    if (predictions_.kind == PredictionKind::kMask) sigmoid(numbers);
    if (task_.classifies()) for_each_position(std::span<float>(numbers), [](std::size_t, auto row) { softmax(row); });
    return numbers;
  }

  /// Calls `visit` with the number of each position of a sample and what is said of its classes.
  template <class T, class Visit>
  void for_each_position(std::span<T> numbers, const Visit& visit) const {
    // A model may have more outputs than the data has classes.
    const auto positions = static_cast<std::size_t>(task_.model_input().target_shape.numel());
    const std::size_t width = numbers.size() / positions;
    for (std::size_t i = 0; i < positions; ++i) visit(i, numbers.subspan(i * width, width));
  }

  void answer(std::span<const float> numbers, std::span<float> row) const {
    if (predictions_.kind != PredictionKind::kClasses) {
      std::ranges::copy(numbers.first(row.size()), row.begin());
      return;
    }
    for_each_position(numbers, [&](std::size_t i, auto position) { row[i] = static_cast<float>(class_of(position)); });
  }

  void count(std::span<const float> numbers, const Tensor& targets, std::size_t sample) {
    const auto size = static_cast<std::size_t>(targets.numel() / targets.size(0));
    const auto labels = targets.as<std::int64_t>().subspan(sample * size, size);
    for_each_position(numbers, [&](std::size_t i, auto position) {
      if (labels[i] == data::kIgnoredLabel) return;
      ++counts_.targets;
      if (class_of(position) == labels[i]) ++counts_.correct;
    });
  }

  void compare(std::span<const float> numbers, std::span<const float> expected) {
    if (task_.classifies()) {
      for_each_position(numbers, [&](std::size_t i, auto position) {
        if (class_of(position) == class_of(expected.subspan(i * position.size(), position.size()))) ++counts_.equal;
      });
    }
    for (std::size_t c = 0; c < numbers.size(); ++c) {
      const double difference = std::abs(static_cast<double>(numbers[c]) - static_cast<double>(expected[c]));
      if (difference > counts_.largest_difference) counts_.largest_difference = difference;
    }
  }

  /// The blocks of all ranks, in their order, to rank 0. Also keeps the ranks together.
  void collect(const Tensor& rows) {
    const Tensor all = Tensor::empty({communicator_.size() * block_, columns_}, DType::kFloat32);
    communicator_.all_gather(rows, all, Stream::calling_thread());
    if (communicator_.rank() != 0 || options_.out.empty()) return;
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
                       .of_mean = !options_.raw_weights && step::has_mean(saved_),
                       .checkpoint = saved_.path};
    if (task_.classifies()) result.accuracy = sums.item(1) / sums.item(6);
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
  data::DatasetPtr dataset_;
  Task task_;
  Predictions predictions_;   ///< on rank 0
  std::int64_t columns_ = 0;  ///< numbers of an answer
  std::int64_t block_;
  data::LoaderOptions loading_;   ///< of this rank's blocks; without steps where it has none
  checkpoint::Checkpoint saved_;  ///< on rank 0
  DType dtype_ = DType::kFloat32;
  std::unique_ptr<Deployed> model_;
  std::unique_ptr<Deployed> float32_;  ///< to compare with
  Counts counts_;
};

}  // namespace

InferResult infer(comm::World& world, const job::Job& job, const InferOptions& options) {
  if (!options.out.empty()) require_prediction_format(options.out);
  return Inference(world, job, options).run();
}

}  // namespace lockstep::train
