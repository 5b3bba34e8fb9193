// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/trace_range.h"

#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

using testing::ElementsAre;

struct ListedRanges final : RangeObserver {
  void range_begins(const char* name, RangeKind kind) override {
    told.push_back(name + std::string(kind == RangeKind::kCommunication ? " (communication)" : ""));
  }
  void range_ends() override { told.emplace_back("end"); }

  std::vector<std::string> told;
};

void ranges() {
  const TraceRange outer("outer");
  const TraceRange inner("inner", RangeKind::kCommunication);
}

TEST(TraceRange, TheThreadsObserverIsToldInOrder) {
  ListedRanges listed;
  ranges();
  EXPECT_EQ(observe_ranges(&listed), nullptr);
  ranges();
  std::thread(ranges).join();
  EXPECT_EQ(observe_ranges(nullptr), &listed);
  ranges();
  EXPECT_THAT(listed.told, ElementsAre("outer", "inner (communication)", "end", "end"));
}

TEST(TraceRange, AThreadWithoutAnObserverTellsThatOfAll) {
  ListedRanges own, others;
  observe_other_ranges(&others);
  observe_ranges(&own);
  ranges();
  std::thread(ranges).join();
  observe_ranges(nullptr);
  EXPECT_EQ(observe_other_ranges(nullptr), &others);
  ranges();
  EXPECT_EQ(own.told.size(), 4u);
  EXPECT_THAT(others.told, ElementsAre("outer", "inner (communication)", "end", "end"));
}

}  // namespace
}  // namespace lockstep
