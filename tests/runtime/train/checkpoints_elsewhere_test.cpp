// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/checkpoints_elsewhere.h"

#include <gtest/gtest.h>

namespace lockstep::train {
namespace {

TEST(CheckpointsElsewhere, AreNoneInAFolderThatAllHostsShare) {
  const Elsewhere found = checkpoints_elsewhere({{"a", {300, 200}}, {"a", {300, 200}}, {"b", {300, 200}}}, "run");
  EXPECT_EQ(found.newer, "");
  EXPECT_EQ(found.older, "");
}

TEST(CheckpointsElsewhere, AreNoneWhereRankZeroAloneHasThem) {
  const Elsewhere found = checkpoints_elsewhere({{"a", {300, 200}}, {"b", {}}}, "run");
  EXPECT_EQ(found.newer + found.older, "");
}

// Another host looks at a shared folder a moment too late.
TEST(CheckpointsElsewhere, AreNoneThatRankZeroSeesToo) {
  EXPECT_EQ(checkpoints_elsewhere({{"a", {300, 200}}, {"b", {200, 100}}}, "run").older, "");
}

TEST(CheckpointsElsewhere, AreNamedWhereRankZeroHasNone) {
  const Elsewhere found = checkpoints_elsewhere({{"b", {}}, {"a", {100}}}, "/local/run");
  EXPECT_EQ(found.newer, "host a holds a checkpoint of step 100 in /local/run, and rank 0, on host b, sees none there");
  EXPECT_EQ(found.older, "");
}

TEST(CheckpointsElsewhere, AreNamedByWhetherTheyAreNewerOrOlder) {
  const Elsewhere found = checkpoints_elsewhere({{"b", {50}}, {"a", {100}}, {"c", {20}}, {"d", {200}}}, "run");
  EXPECT_EQ(found.newer,
            "host a holds a checkpoint of step 100 in run, and rank 0, on host b, sees only one of step 50 "
            "there");
  EXPECT_EQ(found.older,
            "host c holds a checkpoint of step 20 in run, and rank 0, on host b, sees one of step 50 there");
}

}  // namespace
}  // namespace lockstep::train
