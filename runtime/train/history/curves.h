// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace lockstep::train {

/// Which steps share a point of a curve; the same for all runs of a report, so that their curves have common points.
struct CurveGrid {
  std::uint64_t steps_a_bucket = 1;

  /// For runs of up to `steps` steps: a step a point where so many points suffice, else the lowest and the highest
  /// value of each bucket are two points.
  static CurveGrid of(std::uint64_t steps, std::size_t points);
};

/// The curves of a run, made of its lines one by one. Memory and result do not grow with the run's length.
class Curves {
 public:
  explicit Curves(CurveGrid grid) : grid_(grid) {}

  /// A line of a step. Numbers but for step, epoch, time and rank make a curve each; "skipped" makes "skips", their
  /// count so far.
  void add(const nlohmann::ordered_json& line);
  /// {"loss": [point or null, ...]}: of a bucket of several steps two points, in the order in which lowest and highest
  /// came. Five significant digits.
  nlohmann::ordered_json to_json() const;

 private:
  struct Bucket {
    double lowest = 0.0;
    double highest = 0.0;
    bool lowest_first = true;
    bool empty = true;
  };

  void add(const std::string& name, std::size_t bucket, double value);

  CurveGrid grid_;
  std::map<std::string, std::vector<Bucket>> buckets_;
  std::uint64_t skips_ = 0;
};

}  // namespace lockstep::train
