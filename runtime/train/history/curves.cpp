// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/base/json_text.h"

namespace lockstep::train {

using Json = nlohmann::ordered_json;

namespace {

/// A hostile step number must not take the memory.
constexpr std::size_t kMostBuckets = 1'000'000;

Json five_digits(double value) { return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr); }

}  // namespace

CurveGrid CurveGrid::of(std::uint64_t steps, std::size_t points) {
  if (steps <= points) return {};
  const std::uint64_t buckets = std::max<std::uint64_t>(points / 2, 1);
  return {.steps_a_bucket = (steps + buckets - 1) / buckets};
}

void Curves::add(const Json& line) {
  const Json& step = field_of(line, "step");
  if (!step.is_number_unsigned() || step.get<std::uint64_t>() == 0) return;
  const std::uint64_t bucket = (step.get<std::uint64_t>() - 1) / grid_.steps_a_bucket;
  if (bucket >= kMostBuckets) return;
  for (const auto& [name, value] : line.items()) {
    if (!value.is_number() || name == "step" || name == "epoch" || name == "time" || name == "rank") continue;
    add(name, bucket, value.get<double>());
  }
  if (field_of(line, "skipped") == true) ++skips_;
  add("skips", bucket, static_cast<double>(skips_));
}

void Curves::add(const std::string& name, std::size_t at, double value) {
  std::vector<Bucket>& buckets = buckets_[name];
  if (buckets.size() <= at) buckets.resize(at + 1);
  Bucket& bucket = buckets[at];
  if (bucket.empty) {
    bucket = {.lowest = value, .highest = value, .empty = false};
  } else if (value < bucket.lowest) {
    bucket.lowest = value;
    bucket.lowest_first = false;
  } else if (value > bucket.highest) {
    bucket.highest = value;
    bucket.lowest_first = true;
  }
}

Json Curves::to_json() const {
  Json json = Json::object();
  for (const auto& [name, buckets] : buckets_) {
    Json points = Json::array();
    for (const Bucket& bucket : buckets) {
      const Json lowest = bucket.empty ? Json(nullptr) : five_digits(bucket.lowest);
      const Json highest = bucket.empty ? Json(nullptr) : five_digits(bucket.highest);
      if (grid_.steps_a_bucket == 1) {
        points.push_back(highest);
      } else {
        points.push_back(bucket.lowest_first ? lowest : highest);
        points.push_back(bucket.lowest_first ? highest : lowest);
      }
    }
    json[name] = std::move(points);
  }
  return json;
}

}  // namespace lockstep::train
