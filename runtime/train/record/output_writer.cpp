// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/output_writer.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "runtime/base/blocked_signals.h"
#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/train/record/output_queue.h"

namespace lockstep::train {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

/// How long a piece may wait for others to be written with.
constexpr milliseconds kInterval{1000};
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kLongestPause{5000};
/// So many attempts are a matter of the moment.
constexpr int kQuietAttempts = 3;
constexpr milliseconds kLastPatience{1000};
constexpr milliseconds kForever = std::chrono::hours(24 * 365);
constexpr std::size_t kAtOnce = std::size_t{256} << 10;

}  // namespace

struct OutputWriter::State {
  /// The text that waits for a sink, and how writing there goes.
  struct Lane {
    Lane(std::unique_ptr<OutputSink> where, std::size_t most_bytes) : sink(std::move(where)), queue(most_bytes) {}

    std::shared_ptr<OutputSink> sink;
    OutputQueue queue;
    std::uint64_t dropped = 0;
    int failures = 0;       ///< of the last attempts
    std::string error;      ///< of the last attempt
    bool hopeless = false;  ///< the last attempt failed, and not for a matter of the moment
    bool said = false;
    milliseconds pause = kFirstPause;
    Clock::time_point next_try{};
    std::exception_ptr end;  ///< nothing can be written any more
  };

  State(OnTrouble say, std::size_t most) : on_trouble(std::move(say)), most_bytes(most) {}

  const OnTrouble on_trouble;
  const std::size_t most_bytes;
  std::mutex mutex;
  std::condition_variable wake;     ///< the thread
  std::condition_variable written;  ///< whoever flushes
  std::vector<std::unique_ptr<Lane>> lanes;
  std::optional<std::packaged_task<void()>> work;
  bool nudged = false;
  bool abandoned = false;  ///< nobody listens any more
  bool ending = false;
  bool ended = false;

  void run();
  void pass(std::unique_lock<std::mutex>& lock);
  void pass(Lane& lane, std::unique_lock<std::mutex>& lock);
  void note_failure(Lane& lane, const std::exception& error, bool may_pass);
  milliseconds patience() const;
};

void OutputWriter::State::run() {
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait_for(lock, patience(), [this] { return nudged || ending || work.has_value(); });
    const bool last = std::exchange(ending, false);
    nudged = false;
    pass(lock);
    if (auto task = std::exchange(work, std::nullopt)) {
      lock.unlock();
      (*task)();
      task.reset();
      lock.lock();
    }
    written.notify_all();
    if (last) break;
  }
  ended = true;
  written.notify_all();
}

/// Until something is due.
milliseconds OutputWriter::State::patience() const {
  milliseconds patience = kInterval;
  for (const auto& lane : lanes) {
    if (lane->queue.empty() || lane->failures == 0) continue;
    patience = std::min(patience, std::chrono::ceil<milliseconds>(lane->next_try - Clock::now()));
  }
  return std::max(patience, milliseconds(1));
}

void OutputWriter::State::pass(std::unique_lock<std::mutex>& lock) {
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    Lane& lane = *lanes[i];
    while (!lane.queue.empty() && !lane.end && Clock::now() >= lane.next_try) pass(lane, lock);
  }
}

void OutputWriter::State::pass(Lane& lane, std::unique_lock<std::mutex>& lock) {
  std::string bytes, trouble;
  try {
    bytes = lane.queue.front(kAtOnce);
  } catch (const std::bad_alloc& error) {
    return note_failure(lane, error, true);
  }
  lock.unlock();
  try {
    const std::size_t count = lane.sink->write(bytes);
    lock.lock();
    lane.queue.pop(count);
    lane.failures = 0;
    lane.hopeless = false;
    lane.pause = kFirstPause;
    return;
  } catch (const FileError& error) {
    lock.lock();
    note_failure(lane, error, error.transient());
  } catch (const StorageError&) {
    lock.lock();
    lane.end = std::current_exception();
    return;
  } catch (const std::exception& error) {  // too little memory
    lock.lock();
    note_failure(lane, error, true);
  }
  if (lane.said || abandoned || !lane.hopeless) return;
  lane.said = true;
  trouble = lane.error + "; training goes on, and what waits is written where that works later";
  lock.unlock();
  on_trouble(trouble);
  lock.lock();
}

void OutputWriter::State::note_failure(Lane& lane, const std::exception& error, bool may_pass) {
  lane.error = error.what();
  ++lane.failures;
  lane.hopeless = !may_pass || lane.failures > kQuietAttempts;
  lane.next_try = Clock::now() + lane.pause;
  lane.pause = std::min(2 * lane.pause, kLongestPause);
}

OutputWriter::OutputWriter(OnTrouble on_trouble, std::size_t most_bytes)
    : state_(std::make_shared<State>(std::move(on_trouble), most_bytes)) {
  {
    const BlockedSignals for_the_thread;
    thread_ = std::thread([state = state_] { state->run(); });
  }
  pthread_setname_np(thread_.native_handle(), "output");
}

OutputWriter::~OutputWriter() {
  bool ended = false;
  {
    std::unique_lock lock(state_->mutex);
    for (const auto& lane : state_->lanes) lane->next_try = {};
    state_->ending = true;
    state_->wake.notify_all();
    ended = state_->written.wait_for(lock, kLastPatience, [this] { return state_->ended; });
    state_->abandoned = !ended;
  }
  ended ? thread_.join() : thread_.detach();
}

OutputWriter::SinkId OutputWriter::add(std::unique_ptr<OutputSink> sink) {
  const std::lock_guard lock(state_->mutex);
  state_->lanes.push_back(std::make_unique<State::Lane>(std::move(sink), state_->most_bytes));
  return state_->lanes.size() - 1;
}

void OutputWriter::write(SinkId sink, std::string piece) {
  std::string trouble;
  {
    const std::lock_guard lock(state_->mutex);
    State::Lane& lane = *state_->lanes[sink];
    if (lane.end) std::rethrow_exception(lane.end);
    if (lane.queue.has_room(piece.size())) return lane.queue.push(std::move(piece));
    if (lane.dropped++ == 0) {
      const std::string why = lane.failures > 0 ? lane.error : "the disk does not answer";
      trouble = "what is told to " + lane.sink->name() + " is dropped from here on: " + why + "; training goes on";
      lane.said = true;
    }
  }
  if (!trouble.empty()) state_->on_trouble(trouble);
}

void OutputWriter::nudge() {
  const std::lock_guard lock(state_->mutex);
  state_->nudged = true;
  state_->wake.notify_all();
}

bool OutputWriter::flush(milliseconds patience) {
  const auto settled = [this] {
    return !state_->nudged && std::ranges::all_of(state_->lanes, [](const auto& lane) {
      return lane->queue.empty() || lane->end || lane->hopeless;
    });
  };
  std::unique_lock lock(state_->mutex);
  for (const auto& lane : state_->lanes) {
    lane->next_try = {};
    lane->pause = kFirstPause;
    lane->hopeless = false;
  }
  state_->nudged = true;
  state_->wake.notify_all();
  state_->written.wait_for(lock, patience, settled);
  return std::ranges::all_of(state_->lanes, [](const auto& lane) { return lane->queue.empty() || lane->end; });
}

std::optional<std::future<void>> OutputWriter::start(const std::function<void()>& work) {
  const std::lock_guard lock(state_->mutex);
  if (state_->work) return std::nullopt;
  state_->wake.notify_all();
  return state_->work.emplace(work).get_future();
}

bool OutputWriter::perform(const std::function<void()>& work, milliseconds patience) {
  std::optional<std::future<void>> done = start(work);
  if (!done || done->wait_for(patience) != std::future_status::ready) return false;
  done->get();
  return true;
}

void OutputWriter::settle(const std::function<void()>& work, milliseconds patience,
                          const std::function<void()>& on_slow) {
  const auto slow_at = Clock::now() + patience;
  flush(patience);
  const bool slow = Clock::now() >= slow_at;
  if (slow) {
    on_slow();
    flush(kForever);
  }
  std::future<void> done = start(work).value();
  if (!slow && done.wait_until(slow_at) != std::future_status::ready) on_slow();
  done.get();
}

std::map<std::string, std::uint64_t> OutputWriter::lost() const {
  const std::lock_guard lock(state_->mutex);
  std::map<std::string, std::uint64_t> lost;
  for (const auto& lane : state_->lanes) {
    const std::uint64_t count = lane->dropped + lane->queue.pieces();
    if (count > 0) lost[lane->sink->name()] += count;
  }
  return lost;
}

}  // namespace lockstep::train
