// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/same_job.h"

#include <gmock/gmock.h>

namespace lockstep::train {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

RankIdentity rank(std::uint32_t steps, const std::string& version = "1.0") {
  RankIdentity identity{version, {}};
  identity.job.mutable_train()->set_steps(steps);
  return identity;
}

TEST(SameJob, OfEqualRanksHasNothingToSay) {
  EXPECT_THAT(disagreements({rank(5)}), IsEmpty());
  EXPECT_THAT(disagreements({rank(5), rank(5), rank(5)}), IsEmpty());
}

TEST(SameJob, NamesTheFieldTheValuesAndTheRanks) {
  EXPECT_THAT(disagreements({rank(600), rank(600), rank(500)}), Contains("train.steps: 600 / 500 (rank 0 / rank 2)"));
}

TEST(SameJob, GathersRanksThatDifferAlike) {
  EXPECT_THAT(disagreements({rank(600), rank(500), rank(500)}),
              Contains("train.steps: 600 / 500 (rank 0 / ranks 1, 2)"));
}

TEST(SameJob, NamesOtherVersions) {
  EXPECT_THAT(disagreements({rank(5), rank(5, "2.0")}), ElementsAre("version: 1.0 / 2.0 (rank 0 / rank 1)"));
}

// Of a version whose jobs have more fields than ours.
TEST(SameJob, NamesFieldsThatThisVersionDoesNotKnow) {
  const auto with_unknown = [](std::uint64_t value) {
    RankIdentity identity = rank(5);
    job::Train& train = *identity.job.mutable_train();
    train.GetReflection()->MutableUnknownFields(&train)->AddVarint(1999, value);
    return identity;
  };
  EXPECT_THAT(disagreements({with_unknown(7), with_unknown(7)}), IsEmpty());
  EXPECT_THAT(disagreements({with_unknown(7), with_unknown(8)}),
              ElementsAre("train.field 1999: 1999: 7 / 1999: 8 (rank 0 / rank 1)"));
  EXPECT_THAT(disagreements({with_unknown(7), rank(5)}),
              ElementsAre("train.field 1999: 1999: 7 / (unset) (rank 0 / rank 1)"));
}

TEST(SameJob, HoldsForALoneProcess) { require_same_job(*comm::make_self_communicator(), rank(5).job); }

}  // namespace
}  // namespace lockstep::train
