// SPDX-License-Identifier: Apache-2.0
#include "comm/ddp/ddp_options.h"

#include <gmock/gmock.h>

#include <cmath>

#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "runtime/base/error.h"
#include "runtime/nn/layers.h"
#include "runtime/optim/sgd.h"

namespace lockstep::comm {
namespace {

using ::testing::ThrowsMessage;

TEST(DdpOptions, AreCheckedWhereTrainingIsMadeParallel) {
  const World world = World::from_environment();
  nn::Linear model(2, 2);
  const auto optimizer = optim::sgd(model.parameters(), {.lr = 0.1});
  amp::initialize(model, *optimizer);
  const auto refused = [&](const DdpOptions& options, const std::string& message) {
    EXPECT_THAT([&] { DistributedDataParallel(model, world, options); }, ThrowsMessage<FieldError>("comm." + message));
  };
  refused({.bucket_mb = 0}, "bucket_mb: must be > 0, is 0");
  refused({.first_bucket_mb = -1}, "first_bucket_mb: must be > 0, is -1");
  refused({.wire_dtype = DType::kInt32}, "wire_dtype: must be float32, float16 or bfloat16, is int32");
  refused({.gradient_predivide_factor = 0}, "gradient_predivide_factor: must be > 0, is 0");
  refused({.gradient_predivide_factor = std::nan("")}, "gradient_predivide_factor: must be > 0, is nan");
  refused({.reduction_streams = 0}, "reduction_streams: must be >= 1 and <= 8, is 0");
  refused({.reduction_streams = 9}, "reduction_streams: must be >= 1 and <= 8, is 9");
  refused({.sync_batch_norm_group = -1}, "sync_batch_norm_group: must be >= 0, is -1");
  refused({.bucket_ends = {"weight", "nobody"}}, "bucket_ends: the model has no parameter \"nobody\"");
  EXPECT_NO_THROW(DistributedDataParallel(model, world));
}

TEST(DdpOptions, ThatDifferAreDescribedDifferently) {
  const std::string plain = lines_of(DdpOptions{});
  for (const DdpOptions& other :
       {DdpOptions{.bucket_mb = 4}, DdpOptions{.first_bucket_mb = 2}, DdpOptions{.wire_dtype = DType::kFloat16},
        DdpOptions{.sync_batch_norm = false}, DdpOptions{.gradient_average = false},
        DdpOptions{.gradient_predivide_factor = 2}, DdpOptions{.find_unused = true}, DdpOptions{.bucket_ends = {"x"}},
        DdpOptions{.delay_reduction = true}, DdpOptions{.reduction_streams = 2}, DdpOptions{.reduce_in_float32 = true},
        DdpOptions{.sync_batch_norm_group = 2}}) {
    EXPECT_NE(lines_of(other), plain);
  }
}

}  // namespace
}  // namespace lockstep::comm
