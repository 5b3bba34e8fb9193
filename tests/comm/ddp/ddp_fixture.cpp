// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/ddp/ddp_fixture.h"

#include <cmath>

#include "runtime/base/counter_rng.h"
#include "runtime/kernels/assign.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/losses.h"

namespace lockstep::comm {

namespace {

/// A GPU's libraries build their kernels when they are first asked, which takes the ranks differently long.
std::chrono::seconds timeout() { return std::chrono::seconds(rank_device() == kCpu ? 60 : 120); }

std::optional<World> joined;

class JoinWorld : public testing::Environment {
 public:
  void SetUp() override {
    if (lockstep::devices::why_skipped(lockstep::devices::device())) return;
    joined.emplace(World::from_environment({.timeout = timeout(), .device = rank_device()}));
  }
  void TearDown() override { joined.reset(); }
};

[[maybe_unused]] const testing::Environment* const environment = testing::AddGlobalTestEnvironment(new JoinWorld);

}  // namespace

World& world() { return *joined; }

Range cut(const Range& whole, int piece, int pieces, Shares shares) {
  const auto bound = [&](std::int64_t at) {
    std::int64_t of = pieces;
    if (shares == Shares::kLastIdle && pieces > 1) {
      at = std::min<std::int64_t>(at, pieces - 1);
      of = pieces - 1;
    } else if (shares == Shares::kGrowing) {
      at = at * (at + 1);
      of = of * (of + 1);
    }
    return whole.begin + (whole.end - whole.begin) * at / of;
  };
  return {bound(piece), bound(piece + 1)};
}

Samples make_samples(std::int64_t n, std::int64_t extent, std::int64_t channels, std::uint64_t seed) {
  const CounterRng rng(seed, CounterRng::Purpose::kSynthetic);
  std::vector<float> input(static_cast<std::size_t>(n * extent * extent * channels));
  for (std::size_t i = 0; i < input.size(); ++i) input[i] = 2.0f * rng.uniform(i) - 1.0f;
  std::vector<std::int64_t> target(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < target.size(); ++i) target[i] = rng.at(input.size() + i) % kClasses;
  return {Tensor::from(input, {n, extent, extent, channels}), Tensor::from(target, {n})};
}

Learner::Learner(const LearnerOptions& options, std::int64_t extent, std::int64_t channels)
    : options_(options),
      model_(model_zoo::build(options_.model, {{extent, extent, channels}, kClasses}, options_.seed)),
      optimizer_(options_.optimizer.of(model_->parameters())) {
  amp::initialize(*model_, *optimizer_, options_.amp, rank_device());
  scaler_.emplace(make_self_communicator(rank_device()), options_.scaler);
}

void Learner::join() {
  ddp_.emplace(*model_, world(), options_.ddp);
  scaler_.emplace(world(), options_.scaler);
}

double Learner::backward(const Samples& samples, const Part& part, std::uint64_t step) {
  // As for a DistributedDataParallel that is not told how many samples the step has: its factors stay out of it.
  const double all = static_cast<double>(samples.target.numel());
  const double weight = ddp_ && options_.ddp.gradient_average ? static_cast<double>(world().size()) : 1.0;
  double total = 0;
  optimizer_->zero_grad();
  for (std::size_t m = 0; m < part.size(); ++m) {
    std::optional<DistributedDataParallel::NoSync> no_sync;
    if (ddp_ && m + 1 < part.size()) no_sync.emplace(*ddp_);
    const auto [begin, end] = part[m];
    const nn::StepContext context(options_.seed, step, begin);
    const Tensor input = samples.input.rows(begin, end).to(rank_device());
    const Tensor target = samples.target.rows(begin, end).to(rank_device());
    const Tensor output = ddp_ ? ddp_->forward(input) : nn::forward(*model_, input);
    const Tensor loss = ops::cross_entropy(output, target, {.divisor = all / weight});
    total += loss.item() / weight;
    scaler_->scale(loss).backward();
  }
  return total;
}

amp::Verdict Learner::step() {
  const amp::Verdict verdict = *scaler_->step(*optimizer_);
  scaler_->update();
  return verdict;
}

Learner::Part part_of(std::int64_t samples, int micro_batches, int rank, int size, Shares shares) {
  Learner::Part part;
  for (int m = 0; m < micro_batches; ++m) {
    part.push_back(cut(cut({0, samples}, m, micro_batches, Shares::kEven), rank, size, shares));
  }
  return part;
}

double sum_over_ranks(double value) {
  const Tensor sum = Tensor::from<double>({value}, {1});
  world().communicator()->all_reduce(sum, ReduceOp::kSum, 1.0f, Stream::calling_thread());
  return sum.item();
}

double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(kCpu), y = b.to(kCpu);
  double sum = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) sum += (x.item(i) - y.item(i)) * (x.item(i) - y.item(i));
  return std::sqrt(sum);
}

double norm(const Tensor& a) { return distance(a, Tensor::zeros(a.shape(), a.dtype())); }

std::vector<float> floats_of(const Tensor& tensor) {
  const Tensor host = tensor.to(kCpu);
  const Tensor floats = Tensor::empty(host.shape(), DType::kFloat32);
  kernels::cast(host, floats);
  return {floats.as<float>().begin(), floats.as<float>().end()};
}

std::vector<std::string> bits_of(const std::vector<Tensor>& tensors) {
  std::vector<std::string> bits;
  for (const Tensor& tensor : tensors) {
    const Tensor host = tensor.to(kCpu);
    bits.emplace_back(static_cast<const char*>(host.data()), host.bytes());
  }
  return bits;
}

std::vector<Tensor> state_of(Learner& learner) {
  std::vector<Tensor> tensors{learner.arena().masters()};
  if (learner.arena().copies().defined()) tensors.push_back(learner.arena().copies());
  for (const auto& [name, tensor] : learner.optimizer().state()) tensors.push_back(tensor);
  for (const auto& [name, tensor] : learner.optimizer().parameter_state()) tensors.push_back(tensor);
  for (const auto& [name, statistics] : learner.arena().statistics()) tensors.push_back(statistics->committed());
  return tensors;
}

}  // namespace lockstep::comm
