// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

namespace lockstep::train {

/// Where bytes of one kind go, for example a file. Called by the OutputWriter's thread.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  /// For messages: a file's path.
  virtual std::string name() const = 0;
  /// Writes a first part of `bytes`, and returns how many they were. Throws FileError where the same call
  /// may succeed later, and any other StorageError where none ever will.
  virtual std::size_t write(std::string_view bytes) = 0;
};

/// Writes what a run tells from a thread of its own, so that training never waits for a disk. What cannot be written is
/// tried again until the end, a part that was written never twice. Up to kMostBytes wait for each sink; pieces beyond
/// that are dropped and counted. Calls come from one thread at a time.
class OutputWriter {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{8} << 20;

  /// Is told, once a sink, where writing or dropping goes wrong, and why. By either thread.
  using OnTrouble = std::function<void(const std::string&)>;
  using SinkId = std::size_t;

  explicit OutputWriter(OnTrouble on_trouble, std::size_t most_bytes = kMostBytes);
  /// Tries what waits once more. Leaves the thread to itself where a system call keeps it for longer than a second.
  ~OutputWriter();
  OutputWriter(const OutputWriter&) = delete;
  OutputWriter& operator=(const OutputWriter&) = delete;

  SinkId add(std::unique_ptr<OutputSink> sink);
  /// Adds a piece, for example a line, which is written within a second. Never waits. Throws the StorageError that the
  /// sink has ended with.
  void write(SinkId sink, std::string piece);
  /// Has the thread write at once; does not wait for it.
  void nudge();
  /// Waits until all that was added is written, at most for so long, and not for what the system refuses for good or
  /// has refused a few times.
  /// Returns whether nothing waits any longer.
  bool flush(std::chrono::milliseconds patience);
  /// Has the thread do `work` behind one attempt to write all that was added, and waits, at most for so long. Throws
  /// what `work` throws. Returns whether it was done; else it may still be done later, so that it must own what it
  /// uses.
  bool perform(const std::function<void()>& work, std::chrono::milliseconds patience);
  /// Both, but waits as long as the disk needs to take or refuse what was added and to do `work`. Calls `on_slow` once
  /// where that is longer than `patience`. Not behind a perform() that was not done in time.
  void settle(const std::function<void()>& work, std::chrono::milliseconds patience,
              const std::function<void()>& on_slow);
  /// How many pieces were dropped or are not written, by the sinks' names; those with none are left out.
  std::map<std::string, std::uint64_t> lost() const;

 private:
  struct State;

  /// Hands `work` to the thread and returns its end, for which perform() waits. Returns nothing while earlier work has
  /// not begun.
  std::optional<std::future<void>> start(const std::function<void()>& work);

  std::shared_ptr<State> state_;  ///< the thread's, too
  std::thread thread_;
};

}  // namespace lockstep::train
