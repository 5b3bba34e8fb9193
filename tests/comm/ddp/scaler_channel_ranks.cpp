// SPDX-License-Identifier: Apache-2.0
// A scaler's verdicts travel on a channel of their own. Run as 1 to 4 ranks.
#include <gtest/gtest.h>

#include "runtime/ops/ops.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {
namespace {

/// The ranks of world(), and what is asked of them.
class Watched final : public Communicator {
 public:
  int rank() const override { return all_.rank(); }
  int size() const override { return all_.size(); }
  std::string description() const override { return all_.description(); }
  Storage allocate(std::size_t bytes) override { return all_.allocate(bytes); }
  void all_reduce(const Tensor& buffer, ReduceOp op, float premultiply, const Stream& stream) override {
    ++reductions;
    all_.all_reduce(buffer, op, premultiply, stream);
  }
  void broadcast(const Tensor& buffer, int root, const Stream& stream) override {
    all_.broadcast(buffer, root, stream);
  }
  void all_gather(const Tensor& in, const Tensor& out, const Stream& stream) override {
    all_.all_gather(in, out, stream);
  }
  void reduce_scatter(const Tensor& in, const Tensor& out, ReduceOp op, const Stream& stream) override {
    all_.reduce_scatter(in, out, op, stream);
  }
  void barrier(const Stream& stream) override { all_.barrier(stream); }
  std::shared_ptr<Communicator> duplicate(const std::string& name) override {
    channels.push_back(name);
    return all_.duplicate(name);
  }
  std::shared_ptr<Communicator> split(int color, int key, const std::string& name) override {
    return all_.split(color, key, name);
  }

  int reductions = 0;
  std::vector<std::string> channels;

 private:
  Communicator& all_ = *world().communicator();
};

TEST(ScalerChannel, IsItsOwnWhereThereAreSeveralRanks) {
  const auto watched = std::make_shared<Watched>();
  Learner learner({.model = MlpOptions{.hidden = {4}}}, 8, 2);
  amp::GradScaler scaler(watched);
  const Tensor x = Tensor::zeros({4, 128}, DType::kFloat32, rank_device());
  scaler.scale(ops::mean(learner.model().forward(x))).backward();
  EXPECT_EQ((*scaler.step(learner.optimizer())).found_inf, 0.0f);
  scaler.update();
  const bool several = world().size() > 1;
  EXPECT_EQ(watched->channels, several ? std::vector<std::string>{"loss_scale"} : std::vector<std::string>{});
  EXPECT_EQ(watched->reductions, 0) << "one rank has nobody to ask, and several have a channel";
}

}  // namespace
}  // namespace lockstep::comm
