// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_prediction.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace lockstep::train {

namespace {

using comm::CollectiveCost;
using comm::RankLayout;
using comm::RankLinks;

/// The verdict and the step's sums, of few numbers.
constexpr int kAtTheEnd = 2;

struct Request {
  double at_ms = 0;  ///< the rank's own time
  bool is_bucket = false;
  CollectiveCost cost;
};

std::vector<Request> requests_of(const StepSchedule& schedule, const RankLayout& layout, const RankLinks& links) {
  std::vector<Request> requests;
  for (std::size_t i = 0; i < schedule.bucket_ready_ms.size(); ++i) {
    requests.push_back(
        {.at_ms = schedule.bucket_ready_ms[i],
         .is_bucket = true,
         .cost = all_reduce_cost(layout, links, schedule.bucket_elements.at(i), schedule.reduced_dtype)});
  }
  if (schedule.norm_numbers > 0) {
    RankLayout group = layout;
    if (schedule.norm_group > 0) {
      group.ranks = std::min(schedule.norm_group, layout.ranks);
      group.ranks_per_host = std::min(group.ranks, layout.ranks_per_host);
    }
    // Statistics and the sums of their gradients are float32.
    const std::int64_t numbers = schedule.norm_numbers;
    const CollectiveCost forward = all_gather_cost(group, links, numbers * static_cast<std::int64_t>(sizeof(float)));
    const CollectiveCost backward = all_reduce_cost(group, links, numbers, DType::kFloat32);
    for (const double at : schedule.norm_forward_ms) requests.push_back({.at_ms = at, .cost = forward});
    for (const double at : schedule.norm_backward_ms) requests.push_back({.at_ms = at, .cost = backward});
  }
  std::ranges::stable_sort(requests, {}, &Request::at_ms);
  return requests;
}

/// The cores of a rank, which reduce and compute.
class SharedCores {
 public:
  /// Between these times they reduce for `ms`, evenly.
  void reduce(double begin, double end, double ms) {
    if (ms > 0) reductions_.push_back({begin, end, ms / (end - begin)});
  }

  /// When they have computed for `ms` from `begin` on, or would have once all reductions are over.
  double end_of(double ms, double begin) const {
    double now = begin;
    while (true) {
      double share = 1, until = std::numeric_limits<double>::infinity();
      for (const Reduction& reduction : reductions_) {
        if (reduction.begin > now) {
          until = std::min(until, reduction.begin);
        } else if (reduction.end > now) {
          until = std::min(until, reduction.end);
          share -= reduction.share;
        }
      }
      share = std::max(share, 0.0);
      if (ms <= share * (until - now)) return share > 0 ? now + ms / share : now;
      ms -= share * (until - now);
      now = until;
    }
  }

 private:
  struct Reduction {
    double begin;
    double end;
    double share;  ///< of the cores
  };
  std::vector<Reduction> reductions_;
};

}  // namespace

PredictedStep predict_step(const StepSchedule& schedule, const RankLayout& layout, const RankLinks& links) {
  PredictedStep step;
  SharedCores cores;
  double now = 0, done = 0;  // of the step, and of the rank's own time
  const auto compute_until = [&](double own_ms) {
    const double end = cores.end_of(own_ms - done, now);
    step.taken_ms += std::max(end - now - (own_ms - done), 0.0);
    now = end;
    done = own_ms;
  };
  const auto wait_until = [&](double end) {
    step.exposed_ms += std::max(end - now, 0.0);
    now = std::max(end, now);
  };
  double link_free = 0;
  std::vector<double> lane_free(static_cast<std::size_t>(schedule.lanes));
  std::size_t bucket = 0;
  for (const Request& request : requests_of(schedule, layout, links)) {
    compute_until(request.at_ms);
    if (!request.is_bucket) {
      wait_until(now + 1e-3 * request.cost.total_us());
      continue;
    }
    double& lane = lane_free[bucket++ % lane_free.size()];
    const double begin = std::max(now, lane);
    const double at_link = std::max(begin + 1e-3 * request.cost.channel_us, request.cost.link_us > 0 ? link_free : 0);
    lane = std::max(at_link + 1e-3 * request.cost.link_us, begin + 1e-3 * request.cost.core_us);
    if (request.cost.link_us > 0) link_free = lane;
    cores.reduce(begin, lane, 1e-3 * request.cost.core_us);
  }
  compute_until(schedule.reduction_ms);
  wait_until(std::ranges::max(lane_free));
  compute_until(schedule.step_ms);
  wait_until(now + kAtTheEnd * 1e-3 * all_reduce_cost(layout, links, 1, DType::kFloat32).total_us());
  step.step_ms = now;
  return step;
}

}  // namespace lockstep::train
