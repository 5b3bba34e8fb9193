// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/prediction_options.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/field_checks.h"

namespace lockstep::launcher {

namespace {

constexpr std::int64_t kMostRanks = 1'000'000;
constexpr std::int64_t kMostSamples = 1'000'000'000;
/// TCP's data in Ethernet's frames of 1500 bytes, with their headers and the gap between them.
constexpr double kDataOfFrames = 1448.0 / 1538.0;

std::int64_t count_in(std::string_view text, const std::string& whole) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 1 && count <= kMostRanks) return count;
  throw UsageError(
      fmt::format("--predict {}: expected numbers of ranks from 1 to {}, found \"{}\"", whole, kMostRanks, text),
      "Give numbers with commas between them, and the ranks of a host behind a colon: --predict 2,4,64:8");
}

/// The numbers of ranks, and how many a host has: 0 where the text does not say.
struct Request {
  std::vector<std::int64_t> ranks;
  std::int64_t ranks_per_host = 0;
};

Request request_in(const std::string& text) {
  Request request;
  std::string_view rest = text;
  if (const auto colon = rest.find(':'); colon != rest.npos) {
    request.ranks_per_host = count_in(rest.substr(colon + 1), text);
    rest = rest.substr(0, colon);
  }
  for (auto comma = rest.find(','); comma != rest.npos; comma = rest.find(',')) {
    request.ranks.push_back(count_in(rest.substr(0, comma), text));
    rest.remove_prefix(comma + 1);
  }
  request.ranks.push_back(count_in(rest, text));
  return request;
}

}  // namespace

void PredictionOptions::add_to(CLI::App& command, CLI::Option* without) {
  CLI::Option& asked =
      *command
           .add_option("--predict", predict, "a step's time with each of these numbers of ranks, and :N ranks a host")
           ->type_name("RANKS[,RANKS...][:N]");
  CLI::Option& samples =
      *command.add_option("--predict-batches", batches, "of --predict: with each of these numbers of samples a rank")
           ->type_name("SAMPLES[,SAMPLES...]")
           ->delimiter(',')
           ->check(CLI::Range(std::int64_t{1}, kMostSamples))
           ->needs(&asked);
  CLI::Option& gbps = *command
                           .add_option("--network-gbps", network_gbps,
                                       "of --predict: Gbit/s of a host's Ethernet link; default: as measured")
                           ->check(CLI::Range(1e-3, 1e5));
  CLI::Option& latency = *command
                              .add_option("--latency-us", latency_us,
                                          "of --predict: of a message between hosts, one way: half of what ping says")
                              ->capture_default_str()
                              ->check(CLI::Range(0.0, 1e6))
                              ->needs(&gbps);
  gbps.needs(&asked);
  for (CLI::Option* const option : {&asked, &samples, &gbps, &latency}) option->excludes(without);
}

std::vector<std::string> PredictionOptions::arguments() const {
  if (!given()) return {};
  std::vector<std::string> arguments{"--predict", predict};
  if (!batches.empty()) {
    arguments.insert(arguments.end(), {"--predict-batches", fmt::format("{}", fmt::join(batches, ","))});
  }
  if (network_gbps > 0) {
    arguments.insert(arguments.end(),
                     {"--network-gbps", shortest_text(network_gbps), "--latency-us", shortest_text(latency_us)});
  }
  return arguments;
}

std::vector<comm::RankLayout> PredictionOptions::layouts(const comm::RankLayout& run) const {
  const Request request = request_in(predict);
  if (run.ranks % run.ranks_per_host != 0) {
    throw UsageError(fmt::format("--predict {}: the run's hosts have different numbers of ranks", predict),
                     "Give every host as many: --hosts a:2,b:2.");
  }
  const std::int64_t per_host = request.ranks_per_host > 0 ? request.ranks_per_host : run.ranks_per_host;
  std::vector<comm::RankLayout> layouts;
  for (const std::int64_t ranks : request.ranks) {
    if (ranks > per_host && ranks % per_host != 0) {
      throw UsageError(
          fmt::format("--predict {}: {} ranks are no multiple of the {} that a host has", predict, ranks, per_host),
          "Every host has as many ranks.");
    }
    layouts.push_back({.ranks = ranks, .ranks_per_host = std::min(ranks, per_host)});
    if (layouts.back().hosts() == 1 || run.hosts() > 1 || network_gbps > 0) continue;
    throw UsageError(fmt::format("--predict {}: {} ranks are on {} hosts, and the network between them is not known",
                                 predict, ranks, layouts.back().hosts()),
                     fmt::format("Give --network-gbps, or run on several hosts (--hosts). {}:{} has all ranks on one.",
                                 ranks, ranks));
  }
  return layouts;
}

comm::RankLinks PredictionOptions::links(const train::MeasuredLinks& measured,
                                         const train::MachineFloors& floors) const {
  comm::RankLinks links = measured.links;
  // A rank reads as many bytes of the others' gradients as the buffer has, and writes as many.
  if (!measured.in_host) links.host_gb_per_s = floors.memory_gb_per_s / 2;
  // The times of a run of several ranks have what reductions take from them.
  if (!measured.spare_cores && measured.layout.ranks == 1) links.copy_gb_per_s = floors.memory_gb_per_s;
  if (network_gbps > 0) {
    links.network_gbps = kDataOfFrames * network_gbps;
    links.latency_us = latency_us;
  }
  return links;
}

}  // namespace lockstep::launcher
