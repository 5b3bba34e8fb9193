// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <functional>
#include <vector>

#include "runtime/tensor/stream.h"

namespace lockstep::bench {

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// The median of `trains` trains, of about `train_seconds` each; train(runs) returns the seconds of one of its runs.
inline double median_of_trains(const std::function<double(int runs)>& train, double train_seconds, int trains) {
  train(2);  // plans, memory and clocks
  const int runs = static_cast<int>(std::clamp(train_seconds / train(2), 1.0, 10000.0));
  std::vector<double> times;
  for (int i = 0; i < trains; ++i) times.push_back(train(runs));
  return median(times);
}

/// Median seconds of one `run`, which enqueues work on the device's current stream. Timed by the host over trains long
/// enough that launching the first and waiting for the last count for nothing.
inline double seconds_of(Device device, const std::function<void()>& run, double train_seconds, int trains) {
  const Stream stream = Stream::current(device);
  const auto train = [&](int runs) {
    stream.synchronize();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < runs; ++i) run();
    stream.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / runs;
  };
  return median_of_trains(train, train_seconds, trains);
}

/// Median milliseconds of one `run` on the CPU: of the processor's time, which other programs beside this one change
/// less than they do the clock's. As beside_pytorch.py measures.
inline double milliseconds_of(const std::function<void()>& run) {
  const auto train = [&](int runs) {
    const std::clock_t start = std::clock();
    for (int i = 0; i < runs; ++i) run();
    return std::max(static_cast<double>(std::clock() - start), 1.0) / CLOCKS_PER_SEC / runs;
  };
  return 1e3 * median_of_trains(train, 0.03, 5);
}

}  // namespace lockstep::bench
