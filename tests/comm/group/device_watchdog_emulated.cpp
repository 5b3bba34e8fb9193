// SPDX-License-Identifier: Apache-2.0
// How communicators between devices end, with stand-ins for NCCL's that hang, and abort, as NCCL 2.28's do.
#include <gmock/gmock.h>
#include <pthread.h>

#include <optional>

#include "comm/group/device_watch/device_watchdog.h"
#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/devices.h"
#include "tests/support/emulated_gpu/emulation.h"

namespace lockstep::comm {
namespace {

using devices::kGpu;
using std::chrono::milliseconds;

template <class Done>
void nap_until(Done&& done) {
  while (!done()) std::this_thread::sleep_for(milliseconds(1));
}

/// A communicator whose peers never come. A kernel of it ends once its abort flag is set. An abort sets the flag, then
/// waits for the streams that it was used on, then until no graph refers to the communicator.
class Stuck final : public WatchedWork {
 public:
  explicit Stuck(std::string error = "") : state_(std::make_shared<State>()), error_(std::move(error)) {}

  void launch(const Stream& stream) {
    if (gpu::emulation::recording()) {
      ++state_->graphs;
      gpu::emulation::when_graph_ends([state = state_] { --state->graphs; });
    } else {
      ++state_->in_streams;
      ++launched_;
    }
    const bool recorded = gpu::emulation::recording();
    gpu::emulation::append(stream, [state = state_, recorded] {
      nap_until([&] { return state->flag.load(); });
      if (!recorded) --state->in_streams;
    });
  }

  Device device() const override { return kGpu; }
  void look() override {}
  void inspect() override {
    if (launched_ > 0 && !error_.empty()) throw PeerError(error_);
  }
  std::function<void()> abort() override {
    return [state = state_] {
      state->flag = true;
      nap_until([&] { return state->in_streams == 0; });
      nap_until([&] { return state->graphs == 0; });
      state->reclaimed = true;
    };
  }
  bool reclaimed() const { return state_->reclaimed; }

 private:
  struct State {
    std::atomic<bool> flag = false;
    std::atomic<int> in_streams = 0;
    std::atomic<int> graphs = 0;
    std::atomic<bool> reclaimed = false;
  };
  std::shared_ptr<State> state_;
  std::string error_;
  std::atomic<int> launched_ = 0;
};

TEST(DeviceWatchdog, TwoChannelsAndALiveGraphEndTogether) {
  const Stream here = Stream::current(kGpu), side = Stream::create(kGpu, "side");
  auto watchdog = std::make_shared<DeviceWatchdog>();
  Stuck first("captured step 57 in channel \"world\": rank 1 did not arrive"), second;
  watchdog->add(first);
  watchdog->add(second);
  // The graph has kernels of both, and lives as long as this thread does not come to its end.
  gpu::Graph graph(kGpu);
  graph.capture([&] {
    first.launch(Stream::current(kGpu));
    second.launch(Stream::current(kGpu));
  });
  graph.launch();
  // The first channel's kernel stands behind the second's.
  second.launch(side);
  here.wait(side.record());
  first.launch(here);
  try {
    here.record().synchronize();
    FAIL();
  } catch (const PeerError& error) {
    EXPECT_STREQ(error.what(), "captured step 57 in channel \"world\": rank 1 did not arrive");
  }
  EXPECT_THROW(side.synchronize(), PeerError);
  EXPECT_THROW(graph.launch(), PeerError);
  watchdog.reset();  // waits for the aborts
  EXPECT_TRUE(first.reclaimed());
  EXPECT_TRUE(second.reclaimed());
  EXPECT_THROW(graph.launch(), UsageError);
  EXPECT_NO_THROW(here.synchronize());
}

TEST(DeviceWatchdog, AGraphThatIsBeingCapturedIsGivenUpToo) {
  auto watchdog = std::make_shared<DeviceWatchdog>();
  Stuck channel;
  watchdog->add(channel);
  gpu::Graph graph(kGpu);
  graph.capture([&] {
    channel.launch(Stream::current(kGpu));
    watchdog->fail(std::make_exception_ptr(PeerError("rank 1 is gone")));
  });
  EXPECT_THROW(graph.launch(), PeerError);
  watchdog.reset();
  EXPECT_TRUE(channel.reclaimed());
}

TEST(DeviceWatchdog, EndsTheGroupsOfTheWholeProcess) {
  auto watchdog = DeviceWatchdog::of_process();
  EXPECT_EQ(watchdog, DeviceWatchdog::of_process());
  Stuck mine, of_another_group;
  watchdog->add(mine);
  DeviceWatchdog::of_process()->add(of_another_group);
  mine.launch(Stream::current(kGpu));
  watchdog->fail(std::make_exception_ptr(PeerError("rank 1 is gone")));
  EXPECT_THROW(DeviceWatchdog::of_process()->require_working(), PeerError);
  Stuck late;
  EXPECT_THROW(watchdog->add(late), PeerError);
  watchdog.reset();
  EXPECT_TRUE(mine.reclaimed());
  EXPECT_TRUE(of_another_group.reclaimed());
  EXPECT_NO_THROW(DeviceWatchdog::of_process()->require_working()) << "another run begins anew";
}

/// Whose abort returns once the watchdog has served another thread.
class Patient final : public WatchedWork {
 public:
  Device device() const override { return kGpu; }
  void look() override {}
  void inspect() override {}
  std::function<void()> abort() override {
    return [served = served_] { nap_until([&] { return served->load(); }); };
  }
  void serve() { *served_ = true; }

 private:
  std::shared_ptr<std::atomic<bool>> served_ = std::make_shared<std::atomic<bool>>(false);
};

TEST(DeviceWatchdog, HoldsNoLockWhileItAborts) {
  DeviceWatchdog watchdog;
  Patient first, second;
  watchdog.add(first);
  watchdog.add(second);
  watchdog.fail(std::make_exception_ptr(PeerError("rank 1 is gone")));
  watchdog.fail(std::make_exception_ptr(PeerError("the second failure")));
  try {
    watchdog.require_working();
    FAIL();
  } catch (const PeerError& error) {
    EXPECT_STREQ(error.what(), "rank 1 is gone");
  }
  watchdog.remove(first);
  watchdog.remove(second);
  first.serve();
  second.serve();
}

/// A driver that lets one thread in at a time, as CUDA's does where one waits for the device in it.
class Driver {
 public:
  /// Waits inside for all that the stream was given before, as cudaFree does.
  void wait_for(const Stream& stream) {
    auto done = std::make_shared<std::atomic<bool>>(false);
    gpu::emulation::append(stream, [done] { *done = true; });
    const std::lock_guard inside(lock_);
    nap_until([&] { return done->load(); });
  }
  void ask() { const std::lock_guard inside(lock_); }

 private:
  std::mutex lock_;
};

/// A channel whose looks ask the driver, and which is too late once it has waited for some time.
class BehindADriver final : public WatchedWork {
 public:
  explicit BehindADriver(Driver& driver) : driver_(driver) {}
  void launch(const Stream& stream) {
    kernel_.launch(stream);
    began_ = Clock::now();
    launched_ = true;
  }
  Device device() const override { return kGpu; }
  void look() override { driver_.ask(); }
  void inspect() override {
    if (launched_ && Clock::now() - began_ > milliseconds(100)) throw PeerError("rank 1 did not arrive");
  }
  std::function<void()> abort() override { return kernel_.abort(); }

 private:
  using Clock = std::chrono::steady_clock;
  Driver& driver_;
  Stuck kernel_;
  Clock::time_point began_;
  std::atomic<bool> launched_ = false;
};

TEST(DeviceWatchdog, TellsOfAHangThoughAThreadWaitsForItInsideTheDriver) {
  Driver driver;
  auto watchdog = std::make_shared<DeviceWatchdog>();
  BehindADriver channel(driver);
  watchdog->add(channel);
  const Stream here = Stream::current(kGpu);
  channel.launch(here);
  driver.wait_for(here);  // returns once the hang was told of, and the kernel aborted
  EXPECT_THROW(here.synchronize(), PeerError);
  watchdog->remove(channel);
  watchdog.reset();
}

/// While it lives, no thread can be started: there is no room for its stack.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    pthread_attr_setstacksize(&huge, std::size_t{1} << 60);
    pthread_setattr_default_np(&huge);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST(DeviceWatchdog, FailsWhereNoThreadCanBeStartedToo) {
  auto watchdog = std::make_shared<DeviceWatchdog>();
  Patient channel;
  watchdog->add(channel);
  {
    const NoThreads none;
    EXPECT_THROW(std::thread([] {}).join(), std::system_error);
    watchdog->fail(std::make_exception_ptr(PeerError("rank 1 is gone")));
  }
  EXPECT_THROW(watchdog->require_working(), PeerError);
  EXPECT_THROW(Stream::current(kGpu).synchronize(), PeerError);
  watchdog.reset();  // waits for no abort
  EXPECT_NO_THROW(Stream::current(kGpu).synchronize());
}

}  // namespace
}  // namespace lockstep::comm
