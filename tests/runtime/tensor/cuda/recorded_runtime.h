// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <set>
#include <vector>

namespace lockstep::recorded_cuda {

// A CUDA runtime of two devices that does nothing but write down what it is asked, as far as a test asks for it. Any
// call for a device makes a context on the calling thread's: as in CUDA, the first one where the thread has chosen
// none.

inline constexpr int kDevices = 2, kLeastPriority = 0, kGreatestPriority = -5;

/// That any two events lie apart.
inline constexpr std::chrono::microseconds kBetweenEvents{1500};

/// Devices that calls have made a context on since the last forget().
std::set<int> contexts();
/// Of the streams made since then.
std::vector<int> priorities();
/// Of the graphs that were instantiated since then.
std::vector<unsigned long long> graph_flags();
void forget();

}  // namespace lockstep::recorded_cuda
