// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "comm/group/communicator.h"
#include "runtime/base/error.h"

namespace lockstep::comm {
namespace {

using testing::ElementsAre;

class SelfCommunicator : public testing::Test {
 protected:
  std::shared_ptr<Communicator> group_ = make_self_communicator();
  Stream stream_ = Stream::calling_thread();
};

TEST_F(SelfCommunicator, AllReduceOnlyScales) {
  const Tensor tensor = Tensor::from<float>({1, -2, 3}, {3});
  group_->all_reduce(tensor, ReduceOp::kAverage, 1.0f, stream_);
  EXPECT_THAT(tensor.as<float>(), ElementsAre(1, -2, 3));
  group_->all_reduce(tensor, ReduceOp::kSum, 0.5f, stream_);
  EXPECT_THAT(tensor.as<float>(), ElementsAre(0.5f, -1, 1.5f));
}

TEST_F(SelfCommunicator, GatherAndScatterCopy) {
  const Tensor in = Tensor::from<std::int32_t>({1, 2}, {2});
  const Tensor gathered = Tensor::zeros({2}, DType::kInt32);
  const Tensor scattered = Tensor::zeros({2}, DType::kInt32);
  group_->all_gather(in, gathered, stream_);
  group_->reduce_scatter(in, scattered, ReduceOp::kSum, stream_);
  EXPECT_THAT(gathered.as<std::int32_t>(), ElementsAre(1, 2));
  EXPECT_THAT(scattered.as<std::int32_t>(), ElementsAre(1, 2));
}

TEST_F(SelfCommunicator, ChecksArgumentsLikeAnyGroup) {
  EXPECT_THROW(group_->all_reduce(Tensor::zeros({1}, DType::kBool), ReduceOp::kSum, 1.0f, stream_), ShapeError);
  EXPECT_THROW(group_->broadcast(Tensor::zeros({1}, DType::kFloat32), 1, stream_), UsageError);
}

TEST_F(SelfCommunicator, SplitsIntoItselfOrNothing) {
  EXPECT_EQ(group_->split(3, 0)->size(), 1);
  EXPECT_EQ(group_->split(-1, 0), nullptr);
}

TEST_F(SelfCommunicator, TextGoesRound) {
  EXPECT_THAT(group_->all_gather_text("job"), ElementsAre("job"));
  EXPECT_EQ(group_->broadcast_text("job", 0), "job");
  EXPECT_THAT(group_->all_gather_text(""), ElementsAre(""));
}

TEST_F(SelfCommunicator, WorkRunsOnItsStream) {
  const Stream worker = Stream::worker("comm");
  const Tensor tensor = Tensor::from<float>({2}, {1});
  group_->duplicate("gradients")->all_reduce(tensor, ReduceOp::kSum, 2.0f, worker);
  worker.synchronize();
  EXPECT_EQ(tensor.item(), 4.0);
}

}  // namespace
}  // namespace lockstep::comm
