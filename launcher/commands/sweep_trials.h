// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::launcher {

/// A run of a sweep.
struct Trial {
  std::string name;                   ///< of its folder: "lr=0.1 momentum=0.9"
  std::vector<std::string> settings;  ///< "optimizer.sgd.lr=0.1", as --set takes them
};

/// What a sweep varies.
struct SweepSpace {
  std::vector<std::string> grid;  ///< "PATH=a,b,c"; a comma within brackets or braces is part of a value
  std::vector<std::string>
      random;                ///< "PATH=log:LOW:HIGH", "PATH=uniform:LOW:HIGH", "PATH=int:LOW:HIGH", "PATH=choice:a,b,c"
  std::uint64_t draws = 10;  ///< of each point of the grid, where something is random
  std::uint64_t seed = 0;
};

/// Every point of the grid, with draws. A draw depends on the seed, its number and its setting alone, so that a sweep
/// that is made larger keeps its runs. Throws UsageError.
std::vector<Trial> trials_of(const SweepSpace& space);

}  // namespace lockstep::launcher
