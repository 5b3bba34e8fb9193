// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/tensor/device.h"

namespace lockstep {

class StreamImpl;
class EventImpl;

/// A point in a stream's work. A default-constructed event has already happened. Copies share the point.
class Event {
 public:
  Event() = default;
  explicit Event(std::shared_ptr<EventImpl> impl) : impl_(std::move(impl)) {}
  /// Blocks the calling thread until the point is reached; rethrows what the stream's work threw before it.
  void synchronize() const;
  bool done() const;
  const std::shared_ptr<EventImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<EventImpl> impl_;
};

/// An ordered queue of work on a device. Work of one stream runs in the order in which it was enqueued; work of two
/// streams is ordered only by events. Copies share the queue; the last copy's destructor finishes the queue.
///
/// On the CPU there are two kinds: the calling thread's own stream, where work has run when enqueue returns, and a
/// worker's stream, which one thread of its own serves. A thread that waits for a worker's stream runs the queued work
/// itself instead of sleeping, so a small queue costs no context switch.
class Stream {
 public:
  /// The calling thread as a stream: every enqueue runs at once.
  static Stream calling_thread();
  /// A stream with a thread of its own; `name` shows in debuggers (at most 15 characters).
  static Stream worker(const std::string& name);
  /// Where the calling thread's operations on the device run: on the CPU calling_thread(), on a GPU the thread's stream
  /// there.
  static Stream current(Device device);
  /// A stream beside the current one, for work that the current one waits for: on the CPU a worker's, on a GPU one of
  /// the greatest priority.
  static Stream create(Device device, const std::string& name);
  explicit Stream(std::shared_ptr<StreamImpl> impl) : impl_(std::move(impl)) {}

  Device device() const;
  /// Appends host work. An exception it throws is rethrown by the next synchronize (of the stream or of an event behind
  /// it); the work queued behind a failure is dropped. On a GPU's stream the work runs at once, with this stream as the
  /// current one: what it launches is what is appended.
  void enqueue(std::function<void()> work) const;
  /// Work enqueued from now on starts only after `event`.
  void wait(const Event& event) const;
  Event record() const;
  void synchronize() const;
  const std::shared_ptr<StreamImpl>& impl() const { return impl_; }

 private:
  std::shared_ptr<StreamImpl> impl_;
};

/// The interface that a device implements behind Stream and Event.
class EventImpl {
 public:
  virtual ~EventImpl() = default;
  virtual void synchronize() = 0;
  virtual bool done() = 0;
};

class StreamImpl {
 public:
  virtual ~StreamImpl() = default;
  virtual Device device() const = 0;
  virtual void enqueue(std::function<void()> work) = 0;
  virtual void wait(const Event& event) = 0;
  virtual Event record() = 0;
  virtual void synchronize() = 0;
};

}  // namespace lockstep
