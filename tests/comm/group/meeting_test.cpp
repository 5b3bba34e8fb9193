// SPDX-License-Identifier: Apache-2.0
#include "comm/group/shared_memory/meeting.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

namespace lockstep::comm {
namespace {

/// Ranks that are threads of this process, so that ThreadSanitizer sees what they share.
class Meeting : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    window_->bytes = sizeof(SharedMeeting::Block);
    for (int r = 0; r < GetParam(); ++r) {
      blocks_.push_back(std::make_unique<SharedMeeting::Block>());  // zeroed, as fresh shared memory is
      window_->ranks.push_back(r);
      window_->parts.push_back(reinterpret_cast<std::byte*>(blocks_.back().get()));
    }
  }

  /// Calls body(rank, meeting) on a thread for each rank.
  void run(bool spare_cores, const std::function<void(int, SharedMeeting&)>& body) {
    std::vector<std::thread> threads;
    for (int r = 0; r < GetParam(); ++r) {
      threads.emplace_back([&, r] {
        Peers peers(r);
        Topology topology{.local = std::vector<int>(static_cast<std::size_t>(GetParam())),
                          .local_rank = r,
                          .size = GetParam(),
                          .spare_cores = spare_cores};
        std::iota(topology.local.begin(), topology.local.end(), 0);
        SharedMeeting meeting(window_, topology, peers, "stress", std::chrono::seconds(60));
        body(r, meeting);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::shared_ptr<SharedWindow> window_ = std::make_shared<SharedWindow>();
  std::vector<std::unique_ptr<SharedMeeting::Block>> blocks_;
};

/// Numbers that look random and depend on the seed alone.
class Jitter {
 public:
  explicit Jitter(int seed) : state_(static_cast<std::uint32_t>(seed) * 2654435761u + 1) {}
  std::uint32_t operator()() { return state_ = state_ * 1664525u + 1013904223u; }
  /// Comes late in one of the ways that a rank can: not at all, by a moment, by its time slice, or asleep.
  void wait() {
    const std::uint32_t way = (*this)() >> 24;
    for (std::uint32_t i = 0; i < way; ++i) spin_pause();
    if (way % 8 == 0) std::this_thread::yield();
    if (way == 1) std::this_thread::sleep_for(std::chrono::microseconds(500));
  }

 private:
  std::uint32_t state_;
};

constexpr int kRounds = 1000;

std::uint32_t word_of(int rank, int round, std::size_t at) {
  return static_cast<std::uint32_t>(rank * 1000003 + round * 101) + static_cast<std::uint32_t>(at);
}

TEST_P(Meeting, WhatARankShowsIsWhatTheOthersSee) {
  for (const bool spare_cores : {false, true}) {
    std::atomic<int> wrong = 0;
    run(spare_cores, [&](int rank, SharedMeeting& meeting) {
      Jitter jitter(rank);
      for (int round = 0; round < kRounds; ++round) {
        // The same of all ranks, and another from meeting to meeting.
        const std::size_t words = 1 + static_cast<std::size_t>(round) * 37 % 512;
        auto* const own = reinterpret_cast<std::uint32_t*>(meeting.staging_to_come(rank));
        for (std::size_t i = 0; i < words; ++i) own[i] = word_of(rank, round, i);
        jitter.wait();
        const std::vector<Operation>& met =
            meeting.meet({.kind = OperationKind::kBarrier, .count = round, .offset = rank});
        jitter.wait();
        for (int r = 0; r < GetParam(); ++r) {
          if (met[static_cast<std::size_t>(r)].offset != r) ++wrong;
          const auto* const shown = reinterpret_cast<const std::uint32_t*>(meeting.staging(r));
          for (std::size_t i = 0; i < words; ++i) wrong += shown[i] != word_of(r, round, i);
        }
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

/// As gradients are reduced where they lie: everyone reads everyone's slice and writes it to everyone.
TEST_P(Meeting, MemoryThatIsReducedInPlaceIsWholeBehindTheSecondMeeting) {
  const auto ranks = static_cast<std::size_t>(GetParam());
  const std::size_t slice = 64;
  std::vector<std::vector<std::uint32_t>> parts(ranks, std::vector<std::uint32_t>(ranks * slice));
  std::atomic<int> wrong = 0;
  run(true, [&](int rank, SharedMeeting& meeting) {
    Jitter jitter(rank + 100);
    std::vector<std::uint32_t>& own = parts[static_cast<std::size_t>(rank)];
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = word_of(rank, round, i);
      jitter.wait();
      meeting.meet({.kind = OperationKind::kAllReduce, .count = round});
      for (std::size_t i = static_cast<std::size_t>(rank) * slice; i < static_cast<std::size_t>(rank + 1) * slice;
           ++i) {
        std::uint32_t sum = 0;
        for (const auto& part : parts) sum += part[i];
        for (auto& part : parts) part[i] = sum;
      }
      jitter.wait();
      meeting.meet({.kind = OperationKind::kAllReduce, .count = round});
      for (std::size_t i = 0; i < own.size(); ++i) {
        std::uint32_t sum = 0;
        for (int r = 0; r < GetParam(); ++r) sum += word_of(r, round, i);
        wrong += own[i] != sum;
      }
    }
  });
  EXPECT_EQ(wrong, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Meeting, testing::Values(2, 3, 5));

}  // namespace
}  // namespace lockstep::comm
