// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "runtime/tensor/stream.h"

namespace lockstep::gpu {

/// The current streams of the thread that makes this, for another one that works in its place while it waits: what the
/// work appends runs behind what the caller has appended and before what it appends next.
class StreamsOfThread {
 public:
  StreamsOfThread();

  /// Calls `work` with these streams as the calling thread's. Nobody else may use them meanwhile.
  void run(const std::function<void()>& work);
  /// For the thread that made this, behind run(): streams that `work` was the first to ask for become its own, too.
  void adopt() const;

 private:
  std::map<int, Stream> streams_;  ///< by device
};

}  // namespace lockstep::gpu
