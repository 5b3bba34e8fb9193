// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/sync_batch_norm.h"

#include "comm/ddp/ddp_options.h"
#include "runtime/nn/layers.h"
#include "runtime/ops/batch_norm.h"

namespace lockstep::comm {

namespace {

class RankStatistics final : public ops::StatisticsReducer {
 public:
  explicit RankStatistics(std::shared_ptr<Communicator> channel) : channel_(std::move(channel)) {}

  Tensor gather(const Tensor& packed) override {
    const Tensor all = Tensor::empty({channel_->size(), packed.numel()}, packed.dtype(), packed.device());
    channel_->all_gather(packed, all, Stream::current(packed.device()));
    return all;
  }

  void sum(const Tensor& sums) override {
    channel_->all_reduce(sums, ReduceOp::kSum, 1.0f, Stream::current(sums.device()));
  }

 private:
  std::shared_ptr<Communicator> channel_;
};

/// Null: each rank for itself.
void synchronize(nn::Module& model, ops::StatisticsReducer* reducer) {
  model.for_each([reducer](const std::string&, nn::Module& module) {
    if (auto* norm = dynamic_cast<nn::BatchNorm*>(&module)) norm->synchronize(reducer);
  });
}

std::shared_ptr<Communicator> channel_of(Communicator& communicator, int group_size) {
  const int world = communicator.size();
  if (group_size == 0 || group_size == world) return communicator.duplicate("sync_batch_norm");
  require_group(group_size, world);
  return communicator.split(communicator.rank() / group_size, communicator.rank(), "sync_batch_norm");
}

}  // namespace

std::shared_ptr<void> convert_sync_batch_norm(nn::Module& model, Communicator& communicator, int group_size) {
  const auto reducer = std::make_shared<RankStatistics>(channel_of(communicator, group_size));
  synchronize(model, reducer.get());
  return {reducer.get(), [reducer, &model](void*) { synchronize(model, nullptr); }};
}

}  // namespace lockstep::comm
