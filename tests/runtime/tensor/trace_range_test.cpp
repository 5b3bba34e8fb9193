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

}  // namespace
}  // namespace lockstep
