// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/whole_inference.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/inputs/whole_inputs.h"
#include "runtime/data/normalize.h"
#include "runtime/job/job.h"
#include "runtime/step/replicated.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/tensor/gpu_streams.h"
#include "runtime/train/infer/answers.h"
#include "runtime/train/infer/deployed_model.h"
#include "runtime/train/infer/input_failures.h"
#include "runtime/train/infer/prediction_file.h"
#include "runtime/train/over_ranks.h"
#include "runtime/train/same_data.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

/// Far below any comm.timeout_s.
constexpr std::chrono::milliseconds kSignOfLife(100);

/// An input as the model is to see it.
struct ReadInput {
  std::shared_ptr<const data::WholeInput> file;
  Tensor values;  ///< [positions..., C]
};

// An image is a volume of one plane.

Shape with_plane(const Shape& shape, int at) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.insert(extents.begin() + at, 1);
  return Shape(std::span<const std::int64_t>(extents));
}

Shape without_plane(const Shape& shape, int at) {
  std::vector<std::int64_t> extents(shape.extents().begin(), shape.extents().end());
  extents.erase(extents.begin() + at);
  return Shape(std::span<const std::int64_t>(extents));
}

/// `shape` with its first extents those of `other`.
Shape with_extents(Shape shape, const Shape& other, int count) {
  for (int d = 0; d < count; ++d) shape = shape.with(d, other[d]);
  return shape;
}

/// Throws UsageError on every rank unless all of them see the folder, each on a host of its own perhaps. A collective.
void require_shared(const fs::path& folder, comm::Communicator& communicator) {
  if (communicator.size() == 1) return;
  const fs::path mark = folder / communicator.broadcast_text(fmt::format(".lockstep-{}", ::getpid()), 0);
  step::on_rank_zero(communicator, [&] {
    if (const std::error_code error = write_whole_file(mark, "")) {
      throw StorageError("cannot write " + mark.string() + ": " + error.message());
    }
  });
  const bool missing = any_rank(!fs::exists(mark), communicator);
  step::on_rank_zero(communicator, [&] { fs::remove(mark); });
  if (!missing) return;
  throw UsageError("--out " + folder.string() + ": the hosts of the ranks do not share this folder",
                   "Choose one that all of them see, or predict on one host.");
}

class WholeInference {
 public:
  WholeInference(comm::World& world, const job::Job& job, const InferOptions& options)
      : communicator_(*world.communicator()),
        job_(job),
        options_(options),
        data_(known_data_of(job, options.saved)),
        trained_(data::describe(data_, data::Split::kTrain)),
        window_(data::window_of(data_)),
        files_(data::answer_files(data_, options.inputs, options.out.string())),
        windows_(options.windows) {
    windows_.device = options.device;
    if (world.size() > 1) require_same_data([&] { return std::vector{data::digest_of(files_)}; }, communicator_);
    step::on_rank_zero(communicator_, [&] {
      require_writable(options.out / "answer");
      saved_ = find_checkpoint(options.saved.checkpoint);
      for (const std::string& notice : saved_.notices) spdlog::warn(notice);
    });
    require_shared(options.out, communicator_);
    model_ =
        std::make_unique<DeployedModel>(job, Task(job.train(), trained_), saved_, weights_of(options.saved.raw_weights),
                                        DType::kFloat32, options.device, communicator_);
  }

  InferResult run() {
    // The work has a thread of its own: however long a rank reads, predicts or writes, it is not taken for lost.
    gpu::StreamsOfThread streams;
    std::future<void> work =
        std::async(std::launch::async, [this, &streams] { streams.run([this] { predict_mine(); }); });
    try {
      bool working = true;
      do {
        if (!working || work.wait_for(kSignOfLife) != std::future_status::ready) continue;
        working = false;
        work.get();
      } while (any_rank(working, communicator_));
    } catch (...) {
      given_up_ = true;
      throw;
    }
    streams.adopt();
    return result();
  }

 private:
  void predict_mine() {
    const auto first = static_cast<std::size_t>(communicator_.rank());
    const auto step = static_cast<std::size_t>(communicator_.size());
    std::future<ReadInput> coming;
    const auto read_ahead = [&](std::size_t i) {
      if (i < files_.size()) coming = std::async(std::launch::async, [this, i] { return read(files_[i].input); });
    };
    read_ahead(first);
    for (std::size_t i = first; i < files_.size(); i += step) {
      ReadInput input;
      try {
        input = coming.get();
      } catch (const StorageError& error) {
        failures_.emplace(static_cast<std::int64_t>(i), error.what());
      }
      read_ahead(i + step);
      if (input.file) predict(input, files_[i].answer);
    }
  }

  ReadInput read(const std::string& path) const {
    const std::shared_ptr<const data::WholeInput> file = data::open_whole(data_, path);
    data::DatasetPtr prepared = file;
    if (data_.normalize != data::NormalizeOptions()) {
      prepared = std::make_shared<data::Normalize>(prepared, data_.normalize);
    }
    const Tensor values = Tensor::empty(file->sample_shape(), DType::kFloat32);
    float no_target = 0;
    prepared->get({}, {.values = values.mutable_as<float>(), .target = std::span(&no_target, 1)});
    return {file, values};
  }

  void predict(const ReadInput& input, const std::string& to) {
    const autograd::NoGrad no_grad;
    const bool flat = window_.rank() == 2;
    const auto answer_windows = [&](const Tensor& windows) {
      if (given_up_) throw PeerError("another rank has given up");
      const Tensor seen = flat ? windows.detach(without_plane(windows.shape(), 1)) : windows;
      const Tensor output = model_->predict(std::span(&seen, 1));
      return flat ? output.detach(with_plane(output.shape(), 1)) : output;
    };
    const Shape& shape = input.values.shape();
    const Tensor output =
        sliding_window(answer_windows, flat ? input.values.detach(with_plane(shape, 0)) : input.values,
                       flat ? with_plane(window_, 0) : window_, windows_);
    const Answers answers(task_of(shape));
    const std::vector<float> numbers = answers.numbers_of(output.detach(output.shape().batched(1)), 0);
    if (!std::ranges::all_of(numbers, [](float number) { return std::isfinite(number); })) ++not_finite_;
    std::vector<float> prediction(static_cast<std::size_t>(answers.shape().numel()));
    answers.write(numbers, prediction);
    input.file->write_answer(
        to, {.shape = answers.shape(), .numbers = prediction, .classes = answers.kind() == PredictionKind::kClasses});
  }

  /// The task where a sample has the extents of this one.
  Task task_of(const Shape& sample) const {
    data::Description whole = trained_;
    const int rank = window_.rank();
    whole.sample_shape = with_extents(whole.sample_shape, sample, rank);
    whole.target_shape = with_extents(whole.target_shape, sample, rank);
    if (whole.classes > 0) whole.targets_per_sample = whole.target_shape.numel();
    return Task(job_.train(), whole);
  }

  InferResult result() {
    const auto sum = [&](double mine) { return over_ranks(mine, comm::ReduceOp::kSum, communicator_); };
    InferResult result{.samples = std::ssize(files_), .cost = {model_->weight_bytes(), sum(model_->samples_per_s())}};
    result.not_finite = static_cast<std::int64_t>(sum(static_cast<double>(not_finite_)));
    result.failures = failures_of_all(failures_, communicator_);
    result.of_mean = !options_.saved.raw_weights && step::has_mean(saved_);
    result.checkpoint = saved_.path;
    return result;
  }

  comm::Communicator& communicator_;
  const job::Job& job_;
  const InferOptions& options_;
  data::DataOptions data_;
  data::Description trained_;
  Shape window_;  ///< [D, H, W] or [H, W]
  std::vector<data::AnswerFile> files_;
  SlidingWindowOptions windows_;
  checkpoint::Checkpoint saved_;  ///< on rank 0
  std::unique_ptr<DeployedModel> model_;
  std::atomic<bool> given_up_ = false;
  std::int64_t not_finite_ = 0;                   ///< of this rank's inputs
  std::map<std::int64_t, std::string> failures_;  ///< likewise
};

}  // namespace

bool answers_wholes(const job::Job& job, const InferOptions& options) {
  return !options.inputs.empty() && data::predicts_wholes(known_data_of(job, options.saved));
}

bool names_answer_folder(const fs::path& path) {
  return !path.empty() && (!path.has_filename() || fs::is_directory(path));
}

void require_answer_folder(const InferOptions& options) {
  const std::string answers = "the run answers each input with a file";
  if (options.out.empty()) throw UsageError("--out is missing: " + answers, "Give --out FOLDER/.");
  if (!names_answer_folder(options.out)) {
    throw UsageError("--out " + options.out.string() + ": " + answers + ", and needs a folder",
                     "Give --out FOLDER/, which ends in / where it is not there yet.");
  }
  if (options.top > 0)
    throw UsageError("--top-k is for runs that answer with classes of whole samples", "Leave it out.");
  if (options.half)
    throw UsageError("--half: inputs that are answered by files are predicted in float32", "Leave it out.");
}

InferResult infer_wholes(comm::World& world, const job::Job& job, const InferOptions& options) {
  return WholeInference(world, job, options).run();
}

}  // namespace lockstep::train
