// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/inference.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "runtime/autograd/grad_mode.h"
#include "runtime/data/eval_batches.h"
#include "runtime/job/data_options.h"
#include "runtime/job/training_options.h"
#include "runtime/nn/forward.h"
#include "runtime/step/replicated.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/tensor/error.h"
#include "runtime/train/network.h"
#include "runtime/train/prediction.h"
#include "runtime/train/prediction_file.h"
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
  data::DatasetPtr dataset = data::make_dataset(options, split);
  if (dataset->classes() > 0 && dataset->target_shape().rank() > 0) {
    throw UsageError("infer predicts one class or vector a sample; the targets of this data set have the shape " +
                     dataset->target_shape().str());
  }
  return dataset;
}

/// A model that is not trained, with the weights of rank 0's checkpoint.
class Deployed {
 public:
  Deployed(const job::Job& job, const data::Dataset& dataset, const checkpoint::Checkpoint& saved, DType dtype,
           Device device, comm::Communicator& communicator)
      : model_(build_model(job, Task(job.train(), data::describe(dataset)))) {
    step::on_rank_zero(communicator, [&] { restore_for(job, saved, [&] { step::restore_model(*model_, saved); }); });
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
  Tensor predict(const Tensor& input) {
    const auto begin = std::chrono::steady_clock::now();
    const Tensor output = nn::forward(*model_, input).to(kCpu);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    // The first pass takes memory and chooses kernels: it counts only where there is no other.
    if (++passes_ == 2) samples_ = seconds_ = 0;
    samples_ += static_cast<double>(input.size(0));
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

/// What a rank has counted; sums over ranks do not depend on their number.
struct Counts {
  std::int64_t samples = 0;
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
        classifies_(dataset_->classes() > 0),
        columns_(classifies_ ? dataset_->classes() : dataset_->target_shape().numel()),
        block_(job.data().eval_batch()) {
    step::on_rank_zero(communicator_, [&] {
      if (!options.out.empty()) require_writable(options.out);
      saved_ = find_checkpoint(options.checkpoint);
      for (const std::string& notice : saved_.notices) spdlog::warn(notice);
    });
    const DType compute = job::amp_options(job.amp()).dtype.value_or(DType::kFloat32);
    if (options.half) dtype_ = is_reduced(compute) ? compute : DType::kFloat16;
    model_ = std::make_unique<Deployed>(job, *dataset_, saved_, dtype_, options.device, communicator_);
    if (options.half) {
      float32_ = std::make_unique<Deployed>(job, *dataset_, saved_, DType::kFloat32, options.device, communicator_);
    }
  }

  InferResult run() {
    const autograd::NoGrad no_grad;
    const data::EvalBatches blocks(dataset_, block_, 0, 1);
    for (std::int64_t first = 0; first < blocks.size(); first += communicator_.size()) {
      const std::int64_t mine = first + communicator_.rank();
      const Tensor rows = Tensor::zeros({block_, columns_}, DType::kFloat32);
      if (mine < blocks.size()) predict(blocks[mine], rows);
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
    const Tensor input = block.input.to(options_.device);
    const Tensor output = model_->predict(input);
    const Tensor reference = float32_ ? float32_->predict(input) : Tensor();
    const auto columns = static_cast<std::size_t>(columns_);
    for (std::size_t i = 0; i < static_cast<std::size_t>(input.size(0)); ++i) {
      const auto row = rows.mutable_as<float>().subspan(i * columns, columns);
      std::ranges::copy(output.as<float>().subspan(i * columns, columns), row.begin());
      if (classifies_) softmax(row);
      ++counts_.samples;
      if (!all_finite(row)) ++counts_.not_finite;
      if (classifies_ && class_of(row) == block.target.as<std::int64_t>()[i]) ++counts_.correct;
      if (float32_) compare(row, reference.as<float>().subspan(i * columns, columns));
    }
  }

  void compare(std::span<const float> row, std::span<const float> reference) {
    std::vector<float> expected(reference.begin(), reference.end());
    if (classifies_) softmax(expected);
    if (class_of(row) == class_of(expected)) ++counts_.equal;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const double difference = std::abs(static_cast<double>(row[c]) - static_cast<double>(expected[c]));
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
    const Tensor sums = reduced(
        {static_cast<double>(counts_.samples), static_cast<double>(counts_.correct), static_cast<double>(counts_.equal),
         static_cast<double>(counts_.not_finite), model_->samples_per_s(), float32_ ? float32_->samples_per_s() : 0.0},
        comm::ReduceOp::kSum);
    const double difference = reduced({counts_.largest_difference}, comm::ReduceOp::kMax).item(0);
    const double samples = sums.item(0);
    InferResult result{.samples = static_cast<std::int64_t>(samples),
                       .dtype = dtype_,
                       .cost = {model_->weight_bytes(), sums.item(4)},
                       .accuracy = {},
                       .not_finite = static_cast<std::int64_t>(sums.item(3)),
                       .agreement = {},
                       .checkpoint = saved_.path};
    if (classifies_) result.accuracy = sums.item(1) / samples;
    if (!float32_) return result;
    Agreement& agreement = result.agreement.emplace();
    if (classifies_) agreement.equal_classes = sums.item(2) / samples;
    agreement.largest_difference = difference;
    agreement.float32 = {float32_->weight_bytes(), sums.item(5)};
    return result;
  }

  comm::Communicator& communicator_;
  const InferOptions& options_;
  data::DatasetPtr dataset_;
  bool classifies_;
  std::int64_t columns_;
  std::int64_t block_;
  checkpoint::Checkpoint saved_;  ///< on rank 0
  DType dtype_ = DType::kFloat32;
  std::unique_ptr<Deployed> model_;
  std::unique_ptr<Deployed> float32_;  ///< to compare with
  Counts counts_;
  Predictions predictions_{.columns = columns_, .classifies = classifies_, .values = {}};  ///< on rank 0
};

}  // namespace

InferResult infer(comm::World& world, const job::Job& job, const InferOptions& options) {
  if (!options.out.empty()) require_prediction_format(options.out);
  return Inference(world, job, options).run();
}

}  // namespace lockstep::train
