// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/volume_evaluation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/data/data_digest.h"
#include "runtime/data/whole_volumes.h"
#include "runtime/job/data_options.h"
#include "runtime/job/job.h"
#include "runtime/nn/forward.h"
#include "runtime/train/dice.h"
#include "runtime/train/network.h"
#include "runtime/train/over_ranks.h"
#include "runtime/train/restored_network.h"
#include "runtime/train/same_data.h"

namespace lockstep::train {

namespace {

/// What counts of one volume; a row of a table that all ranks fill.
struct VolumeFigures {
  double loss = 0;
  double voxels = 0;              ///< with a label
  double correct = 0;             ///< of them
  std::vector<Overlap> overlaps;  ///< of each class, or of the mask
};

constexpr std::size_t kNumbersBeforeOverlaps = 3;

/// The one sample of a data set.
struct Volume {
  explicit Volume(const data::Dataset& volume) : image(Tensor::empty(volume.sample_shape(), DType::kFloat32)) {
    const bool classes = volume.classes() > 0;
    target = Tensor::empty(volume.target_shape().batched(1), classes ? DType::kInt64 : DType::kFloat32);
    data::Sample sample{.values = image.mutable_as<float>()};
    if (classes) sample.labels = target.mutable_as<std::int64_t>();
    if (!classes) sample.target = target.mutable_as<float>();
    if (volume.weighted()) {
      weight = Tensor::empty({1}, DType::kFloat32);
      sample.weight = weight.mutable_as<float>();
    }
    volume.get({}, sample);
  }

  Tensor image;
  Tensor target;  ///< of a batch of one
  Tensor weight;  ///< likewise; undefined without
};

class VolumeEvaluation {
 public:
  VolumeEvaluation(comm::World& world, const job::Job& job, const VolumeEvalOptions& options)
      : communicator_(*world.communicator()),
        job_(job),
        options_(options),
        data_(data_of(job, options.saved)),
        volumes_(data::whole_volumes(data_)),
        trained_(data::describe(data_, data::Split::kTrain)),
        network_(job, trained_, options.windows.device) {
    if (world.size() > 1) {
      require_same_data([&] { return std::vector{data::digest_of("data.eval", *volumes_.all)}; }, communicator_);
    }
    restored_ = restore_network(network_, world, job, options.saved);
  }

  EvalResult run() {
    const autograd::NoGrad no_grad;
    network_.model().train(false);
    const std::size_t count = volumes_.each.size();
    std::vector<VolumeFigures> figures(count);
    for (auto i = static_cast<std::size_t>(communicator_.rank()); i < count;
         i += static_cast<std::size_t>(communicator_.size())) {
      figures[i] = figures_of(*volumes_.each[i]);
    }
    // The others' windows.
    while (any_rank(false, communicator_)) {
    }
    return result(shared(figures));
  }

 private:
  VolumeFigures figures_of(const data::Dataset& volume) {
    const data::Description data = data::as_trained(data::describe(volume), trained_);
    const Task task(job_.train(), data);
    const Volume drawn(volume);
    const auto answer = [this](const Tensor& windows) {
      const Tensor output = nn::forward(network_.model(), windows);
      // Ranks with fewer windows must not take this one for lost.
      any_rank(true, communicator_);
      return output;
    };
    const Tensor output = sliding_window(answer, drawn.image, *data_.augment.volume.patch, options_.windows);
    VolumeFigures figures;
    const std::span<const float> numbers = output.as<float>();
    if (task.classifies()) {
      figures.loss = task.loss(output.detach(output.shape().batched(1)), drawn.target, 1.0, drawn.weight).item();
      figures.overlaps = overlap_of_classes(numbers, drawn.target.as<std::int64_t>());
      for (const Overlap& overlap : figures.overlaps) {
        figures.voxels += static_cast<double>(overlap.expected);
        figures.correct += static_cast<double>(overlap.both);
      }
      return figures;
    }
    figures.loss = task.loss(output.detach(drawn.target.shape()), drawn.target, 1.0, drawn.weight).item();
    if (task.learns_masks()) figures.overlaps = {overlap_of_mask(numbers, drawn.target.as<float>())};
    return figures;
  }

  /// Those of all ranks: of each volume one rank has numbers, and the others zeros.
  std::vector<VolumeFigures> shared(const std::vector<VolumeFigures>& mine) {
    const double widest = over_ranks(static_cast<double>(widest_of(mine)), comm::ReduceOp::kMax, communicator_);
    const auto overlaps = static_cast<std::size_t>(widest);
    const std::size_t width = kNumbersBeforeOverlaps + 3 * overlaps;
    std::vector<double> table(mine.size() * width);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      double* number = table.data() + i * width;
      for (const double each : {mine[i].loss, mine[i].voxels, mine[i].correct}) *number++ = each;
      for (const Overlap& overlap : mine[i].overlaps) {
        for (const std::int64_t each : {overlap.both, overlap.answered, overlap.expected}) {
          *number++ = static_cast<double>(each);
        }
      }
    }
    const Tensor all = Tensor::from(table, {static_cast<std::int64_t>(table.size())});
    communicator_.all_reduce(all, comm::ReduceOp::kSum, 1.0f, Stream::calling_thread());
    const double* number = all.as<double>().data();
    std::vector<VolumeFigures> figures(mine.size());
    for (VolumeFigures& volume : figures) {
      for (double* each : {&volume.loss, &volume.voxels, &volume.correct}) *each = *number++;
      volume.overlaps.resize(overlaps);
      for (Overlap& overlap : volume.overlaps) {
        for (std::int64_t* each : {&overlap.both, &overlap.answered, &overlap.expected}) {
          *each = static_cast<std::int64_t>(*number++);
        }
      }
    }
    return figures;
  }

  static std::size_t widest_of(const std::vector<VolumeFigures>& figures) {
    std::size_t widest = 0;
    for (const VolumeFigures& volume : figures) widest = std::max(widest, volume.overlaps.size());
    return widest;
  }

  EvalResult result(const std::vector<VolumeFigures>& figures) const {
    const auto count = static_cast<double>(figures.size());
    VolumeFigures sums;
    double dice = 0;
    for (const VolumeFigures& volume : figures) {
      sums.loss += volume.loss;
      sums.voxels += volume.voxels;
      sums.correct += volume.correct;
      if (!volume.overlaps.empty()) dice += dice_of(volume);
    }
    EvalResult result{.samples = std::ssize(figures), .loss = sums.loss / count};
    if (network_.task().classifies()) result.metrics.push_back({"accuracy", sums.correct / sums.voxels});
    if (!figures.front().overlaps.empty()) result.metrics.push_back({"dice", dice / count});
    if (network_.task().classifies()) add_dice_of_classes(figures, result);
    result.checkpoint = restored_.checkpoint;
    result.of_mean = restored_.of_mean;
    for (std::size_t i = 0; i < figures.size() && !result.bad_batch; ++i) {
      const auto at = static_cast<std::int64_t>(i);
      if (!std::isfinite(figures[i].loss)) result.bad_batch = SampleRange{at, at + 1};
    }
    return result;
  }

  double dice_of(const VolumeFigures& volume) const {
    return network_.task().classifies() ? mean_dice(volume.overlaps) : volume.overlaps.front().dice();
  }

  static void add_dice_of_classes(const std::vector<VolumeFigures>& figures, EvalResult& result) {
    for (std::size_t c = 1; c < figures.front().overlaps.size(); ++c) {
      double sum = 0;
      int occurring = 0;
      for (const VolumeFigures& volume : figures) {
        if (!volume.overlaps[c].occurs()) continue;
        sum += volume.overlaps[c].dice();
        ++occurring;
      }
      if (occurring > 0) result.metrics.push_back({"dice_" + std::to_string(c), sum / occurring});
    }
  }

  comm::Communicator& communicator_;
  const job::Job& job_;
  const VolumeEvalOptions& options_;
  data::DataOptions data_;
  data::WholeVolumes volumes_;
  data::Description trained_;
  Network network_;
  RestoredFrom restored_;
};

}  // namespace

EvalResult evaluate_volumes(comm::World& world, const job::Job& job, const VolumeEvalOptions& options) {
  if (!job::evaluates(job.data())) {
    throw UsageError("data.eval: the job names no evaluation data",
                     "Add data { eval { ... } }, or data { eval_share: 0.1 }.");
  }
  return VolumeEvaluation(world, job, options).run();
}

}  // namespace lockstep::train
