// SPDX-License-Identifier: Apache-2.0
#include "runtime/tensor/stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

TEST(CallingThreadStream, RunsWorkAtOnce) {
  const Stream stream = Stream::calling_thread();
  std::thread::id ran_on;
  stream.enqueue([&] { ran_on = std::this_thread::get_id(); });
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  EXPECT_TRUE(stream.record().done());
  EXPECT_THROW(stream.enqueue([] { throw std::runtime_error("boom"); }), std::runtime_error);
}

TEST(Event, ADefaultEventHasHappened) {
  const Event event;
  EXPECT_TRUE(event.done());
  event.synchronize();
}

TEST(WorkerStream, RunsWorkInTheOrderOfEnqueuing) {
  const Stream stream = Stream::worker("ordered");
  std::vector<int> order;
  for (int i = 0; i < 1000; ++i) stream.enqueue([&order, i] { order.push_back(i); });
  stream.synchronize();
  ASSERT_EQ(order.size(), 1000u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(WorkerStream, RunsWithoutAnyoneWaiting) {
  const Stream stream = Stream::worker("alone");
  std::latch ran(1);
  stream.enqueue([&] { ran.count_down(); });
  ran.wait();
}

TEST(WorkerStream, AWaitingThreadRunsTheQueuedWorkItself) {
  const Stream stream = Stream::worker("helped");
  std::latch started(1);
  std::latch proceed(1);
  stream.enqueue([&] {
    started.count_down();
    proceed.wait();
  });
  started.wait();
  // Whoever becomes free first runs these; each runs once, in order, on one thread at a time.
  std::atomic<int> running = 0;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    stream.enqueue([&, i] {
      EXPECT_EQ(running.fetch_add(1), 0);
      order.push_back(i);
      running.fetch_sub(1);
    });
  }
  std::thread other([&] { stream.synchronize(); });
  proceed.count_down();
  stream.synchronize();
  other.join();
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

TEST(WorkerStream, AnEventMarksAPointAndNotTheEnd) {
  const Stream stream = Stream::worker("point");
  std::latch proceed(1);
  bool first = false;
  stream.enqueue([&] { first = true; });
  const Event point = stream.record();
  stream.enqueue([&] { proceed.wait(); });
  const Event end = stream.record();
  point.synchronize();
  EXPECT_TRUE(first);
  EXPECT_TRUE(point.done());
  EXPECT_FALSE(end.done());
  proceed.count_down();
  end.synchronize();
  EXPECT_TRUE(end.done());
}

TEST(WorkerStream, OneStreamWaitsForAnEventOfAnother) {
  const Stream producer = Stream::worker("producer");
  const Stream consumer = Stream::worker("consumer");
  std::vector<int> log;
  std::latch proceed(1);
  for (int round = 0; round < 50; ++round) {
    producer.enqueue([&, round] {
      if (round == 0) proceed.wait();
      log.push_back(2 * round);
    });
    consumer.wait(producer.record());
    consumer.enqueue([&, round] { log.push_back(2 * round + 1); });
    producer.wait(consumer.record());
  }
  proceed.count_down();
  consumer.synchronize();
  ASSERT_EQ(log.size(), 100u);
  EXPECT_TRUE(std::ranges::is_sorted(log));
}

TEST(WorkerStream, AFailureIsRethrownAndDropsTheWorkBehindIt) {
  const Stream stream = Stream::worker("failing");
  bool before = false;
  bool behind = false;
  stream.enqueue([&] { before = true; });
  stream.enqueue([] { throw std::runtime_error("boom"); });
  stream.enqueue([&] { behind = true; });
  const Event event = stream.record();
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_THROW(event.synchronize(), std::runtime_error);
  EXPECT_TRUE(before);
  EXPECT_FALSE(behind);
}

TEST(WorkerStream, AnEventBeforeAFailureIsNotTouchedByIt) {
  const Stream stream = Stream::worker("failing");
  stream.enqueue([] {});
  const Event before = stream.record();
  stream.enqueue([] { throw std::runtime_error("boom"); });
  EXPECT_THROW(stream.synchronize(), std::runtime_error);
  EXPECT_NO_THROW(before.synchronize());
}

TEST(WorkerStream, AFailureReachesTheStreamThatWaitsForIt) {
  const Stream producer = Stream::worker("producer");
  const Stream consumer = Stream::worker("consumer");
  producer.enqueue([] { throw std::runtime_error("boom"); });
  consumer.wait(producer.record());
  EXPECT_THROW(consumer.synchronize(), std::runtime_error);
}

TEST(WorkerStream, TheLastCopyFinishesTheQueue) {
  std::atomic<int> ran = 0;
  {
    const Stream stream = Stream::worker("dropped");
    for (int i = 0; i < 100; ++i) stream.enqueue([&] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
}

TEST(WorkerStream, WorkMayHoldTheLastHandleOfItsOwnStream) {
  std::latch ran(1);
  {
    const Stream stream = Stream::worker("cycle");
    stream.enqueue([&ran, stream] { ran.count_down(); });
    stream.wait(stream.record());
  }
  ran.wait();
}

TEST(WorkerStream, AWaitingThreadMayReleaseTheLastHandle) {
  std::atomic<int> ran = 0;
  for (int i = 0; i < 50; ++i) {
    Event end;
    {
      const Stream stream = Stream::worker("handed over");
      stream.enqueue([&ran, stream] { ++ran; });
      stream.enqueue([&ran] { ++ran; });
      end = stream.record();
    }
    end.synchronize();
  }
  EXPECT_EQ(ran, 100);
}

TEST(WorkerStream, WorkIsReleasedBeforeItCountsAsDone) {
  const Stream stream = Stream::worker("released");
  const auto held = std::make_shared<int>(1);
  for (int i = 0; i < 100; ++i) {
    stream.enqueue([held] {});
    stream.synchronize();
    ASSERT_EQ(held.use_count(), 1);
  }
}

}  // namespace
}  // namespace lockstep
