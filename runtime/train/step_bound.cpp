// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lockstep::train {

namespace {

using step::StepPart;

// Shares of a step from which on something bounds it.
constexpr double kDataShare = 0.2;
constexpr double kCommunicationShare = 0.2;
constexpr double kProductsShare = 0.5;
constexpr double kOverheadShare = 0.4;
constexpr double kMemoryShare = 0.4;
constexpr double kOptimizerShare = 0.3;
/// A share of the floor that products of a layer can be brought to.
constexpr double kNearFloor = 0.5;
/// An operation shorter than this is mostly its call: memory, shapes, the graph.
constexpr double kShortMs = 0.01;
/// A dtype is worth trying from such a speedup of products on.
constexpr double kFasterDType = 1.3;

template <class Chosen>
double share_of(const StepProfile& profile, Chosen chosen) {
  double ms = 0;
  for (const ProfiledPass& pass : profile.passes) {
    if (pass.is_operation && chosen(pass)) ms += pass.ms;
  }
  return profile.step.mean > 0 ? ms / profile.step.mean : 0;
}

bool has_products(const ProfiledPass& pass) { return pass.gflops > 0; }
bool is_short(const ProfiledPass& pass) { return pass.ms < kShortMs * pass.calls; }

double products_share(const StepProfile& profile) { return share_of(profile, has_products); }

/// The share of their floor that all products together reach.
double products_reach(const StepProfile& profile) {
  double ms = 0, of_floor = 0;
  for (const ProfiledPass& pass : profile.passes) {
    if (!pass.is_operation || !has_products(pass) || !pass.of_floor) continue;
    ms += pass.ms;
    of_floor += pass.ms * *pass.of_floor;
  }
  return ms > 0 ? of_floor / ms : 0;
}

/// The pass of products that would save most at its floor.
std::string furthest_below_floor(const StepProfile& profile) {
  const auto to_save = [](const ProfiledPass& pass) {
    return has_products(pass) && pass.of_floor ? pass.ms * (1 - *pass.of_floor) : 0.0;
  };
  return std::ranges::max_element(profile.passes, {}, to_save)->name;
}

double overhead_share(const StepProfile& profile) { return share_of(profile, is_short); }
double memory_share(const StepProfile& profile) {
  return share_of(profile, [](const ProfiledPass& pass) { return !has_products(pass) && !is_short(pass); });
}

std::string in_percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string of_data(const StepProfile& profile) {
  return fmt::format(
      "{} of the step waits for data: raise data.decode_threads and data.prefetch, and look with bench --data",
      in_percent(profile.share(StepPart::kData)));
}

std::string of_straggler(const StepProfile& profile) {
  const int rank = profile.straggler().value_or(0);
  return fmt::format(
      "rank {} makes the others wait: it takes {:.2f} ms a step for itself; look at what else runs on "
      "its host and at its share of the cores",
      rank, profile.ranks.at(static_cast<std::size_t>(rank)).own_ms());
}

std::string of_communication(const StepProfile& profile) {
  const double ms = profile.part(StepPart::kCommunication);
  const double calls_ms =
      profile.transport ? 1e-3 * profile.transport->alpha_us * static_cast<double>(profile.buckets) : 0;
  const std::string begin = in_percent(profile.share(StepPart::kCommunication)) +
                            " of the step is communication with nothing left to compute: ";
  const RankProfile& least = *std::ranges::min_element(profile.ranks, {}, &RankProfile::waited_ms);
  if (profile.ranks.size() > 1 && least.waited_ms > ms / 2) {
    return begin + "most of it waits for other ranks, each for each: give every rank cores of its own";
  }
  if (profile.buckets > 2 && calls_ms > ms / 2) {
    return begin + "fewer, larger buckets: raise comm.bucket_mb";
  }
  if (!is_reduced(profile.wire_dtype)) return begin + "halve the bytes with comm.wire_dtype=FP16 or BF16";
  return begin + "a larger data.global_batch, or train.accumulate, reduces gradients less often for the same samples";
}

std::string of_products(const StepProfile& profile) {
  const double reach = products_reach(profile);
  const double faster = profile.floors.bfloat16_gflops / std::max(profile.floors.gflops(profile.compute_dtype), 1e-9);
  std::string begin =
      in_percent(products_share(profile)) + " of the step is products, at " + in_percent(reach) + " of the floor: ";
  if (faster >= kFasterDType && profile.compute_dtype != DType::kBFloat16) {
    return begin + fmt::format("bf16 multiplies {:.1f} times as fast here: amp.opt_level=O1 amp.dtype=BF16", faster);
  }
  if (reach < kNearFloor) {
    return begin + "they are too small for the processor: raise data.global_batch; furthest below is " +
           furthest_below_floor(profile);
  }
  return begin + "the processor is the bound: more ranks on other cores, or a smaller model";
}

std::string of_overhead(const StepProfile& profile) {
  return in_percent(overhead_share(profile)) +
         " of the step is operations shorter than 10 us, mostly their calls: raise data.global_batch";
}

std::string of_memory(const StepProfile& profile) {
  const std::string begin = in_percent(memory_share(profile)) + " of the step is element-wise work, bound by memory: ";
  if (profile.compute_dtype == DType::kFloat32) return begin + "halve its bytes with amp.opt_level=O1 amp.dtype=BF16";
  return begin + "smaller micro-batches (train.accumulate) stay in the caches";
}

std::string of_optimizer(const StepProfile& profile) {
  return in_percent(profile.share(StepPart::kUpdate)) +
         " of the step is the optimizer's: a larger data.global_batch, or train.accumulate, updates less often for the "
         "same samples";
}

std::string of_none(const StepProfile& profile) {
  std::string text = "no part of the step stands out";
  for (const ProfiledPass& pass : profile.passes) {
    if (!pass.is_operation) continue;
    text += fmt::format(": the heaviest operation is {}, {} of it", pass.name, in_percent(pass.ms / profile.step.mean));
    break;
  }
  return text;
}

struct Rule {
  const char* name;
  bool (*holds)(const StepProfile& profile);
  std::string (*sentence)(const StepProfile& profile);
};

constexpr std::array kRules{
    Rule{"data", [](const StepProfile& p) { return p.share(StepPart::kData) >= kDataShare; }, of_data},
    Rule{"straggler", [](const StepProfile& p) { return p.straggler().has_value(); }, of_straggler},
    Rule{"communication", [](const StepProfile& p) { return p.share(StepPart::kCommunication) >= kCommunicationShare; },
         of_communication},
    Rule{"overhead", [](const StepProfile& p) { return overhead_share(p) >= kOverheadShare; }, of_overhead},
    Rule{"products", [](const StepProfile& p) { return products_share(p) >= kProductsShare; }, of_products},
    Rule{"memory", [](const StepProfile& p) { return memory_share(p) >= kMemoryShare; }, of_memory},
    Rule{"optimizer", [](const StepProfile& p) { return p.share(StepPart::kUpdate) >= kOptimizerShare; }, of_optimizer},
    Rule{"none", [](const StepProfile&) { return true; }, of_none},
};

}  // namespace

StepBound bound_of(const StepProfile& profile) {
  for (const Rule& rule : kRules) {
    if (rule.holds(profile)) return {rule.name, rule.sentence(profile)};
  }
  return {};
}

}  // namespace lockstep::train
