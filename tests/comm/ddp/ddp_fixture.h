// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "amp/grad_scaler/grad_scaler.h"
#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "comm/group/world.h"
#include "model_zoo/build.h"
#include "runtime/optim/optimizer.h"
#include "tests/comm/rank_device.h"
#include "tests/runtime/optim/make_optimizer.h"

namespace lockstep::comm {

/// The ranks of this test program, joined once for all tests; each trains on rank_device().
World& world();

using kernels::Activation;
using model_zoo::ConvnetOptions;
using model_zoo::MlpOptions;
using optim::testing::MakeOptimizer;
using optim::testing::with_adagrad;
using optim::testing::with_adamw;
using optim::testing::with_lamb;
using optim::testing::with_lars;
using optim::testing::with_novograd;
using optim::testing::with_sgd;

/// For gradients that need no scale.
inline constexpr amp::GradScalerOptions kUnscaled{.dynamic = false, .init = 1};

/// What a Learner trains, and how.
struct LearnerOptions {
  model_zoo::ModelOptions model;
  MakeOptimizer optimizer = with_sgd({.lr = 0.1});
  amp::AmpOptions amp = {};
  amp::GradScalerOptions scaler = kUnscaled;
  DdpOptions ddp = {};
  std::uint64_t seed = 0;
};

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// How something is shared out: about equally; with shares that grow; or with nothing for the last one.
enum class Shares { kEven, kGrowing, kLastIdle };
Range cut(const Range& whole, int piece, int pieces, Shares shares);

struct Samples {
  Tensor input;   ///< float32 [n, sample shape...]
  Tensor target;  ///< int64 [n]
};
inline constexpr std::int64_t kClasses = 5;
/// Random images [n, extent, extent, channels] and classes; the same on every rank.
Samples make_samples(std::int64_t n, std::int64_t extent, std::int64_t channels, std::uint64_t seed);

/// One model in training on rank_device(), alone or as a rank among others: the loop that a user would write.
class Learner {
 public:
  /// Its part of a step's samples: a range for each micro-batch.
  using Part = std::vector<Range>;

  /// For samples [extent, extent, channels]. On its own, it is fed whole batches.
  Learner(const LearnerOptions& options, std::int64_t extent, std::int64_t channels);
  /// The model is one of world()'s.
  void join();

  /// Forward and backward of every micro-batch; returns this part's contribution to the mean loss of all samples.
  double backward(const Samples& samples, const Part& part, std::uint64_t step);
  amp::Verdict step();

  nn::Module& model() { return *model_; }
  nn::Arena& arena() { return *model_->arena(); }
  optim::Optimizer& optimizer() { return *optimizer_; }
  amp::GradScaler& scaler() { return *scaler_; }
  DistributedDataParallel& ddp() { return *ddp_; }

 private:
  LearnerOptions options_;
  std::unique_ptr<nn::Module> model_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::optional<DistributedDataParallel> ddp_;
  std::optional<amp::GradScaler> scaler_;
};

/// A step's samples cut into micro-batches, and each of those into the parts of `size` ranks, of which this is
/// `rank`'s.
Learner::Part part_of(std::int64_t samples, int micro_batches, int rank, int size, Shares shares);

/// The output of one rank that has the whole batch, of so many samples.
inline ShareOutput output_of_whole(const Tensor& output, std::int64_t samples) {
  return {output, samples, Share{.loss_divisor = static_cast<double>(samples)}};
}

/// The sum over the ranks of world().
double sum_over_ranks(double value);

/// Euclidean norm of a - b, and of a.
double distance(const Tensor& a, const Tensor& b);
double norm(const Tensor& a);
/// The elements of a floating tensor, in float32.
std::vector<float> floats_of(const Tensor& tensor);
/// The bytes of tensors, to see whether any bit of them changes.
std::vector<std::string> bits_of(const std::vector<Tensor>& tensors);
/// All that a step may change: masters, compute copies, optimizer state, running statistics.
std::vector<Tensor> state_of(Learner& learner);

}  // namespace lockstep::comm
