// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/train/link_bench.h"
#include "runtime/train/step_profile.h"

namespace lockstep::launcher {

/// For which ranks `lockstep bench` predicts a step, and over which network.
struct PredictionOptions {
  std::string predict;                ///< "2,4,64:8"; empty: none
  std::vector<std::int64_t> batches;  ///< samples of a rank; empty: as the run has
  double network_gbps = 0;            ///< 0: as measured
  double latency_us = kLatencyUs;

  static constexpr double kLatencyUs = 50;

  /// The options, all of which exclude `without`.
  void add_to(CLI::App& command, CLI::Option* without);
  bool given() const { return !predict.empty(); }
  /// The options as a rank's command line says them.
  std::vector<std::string> arguments() const;
  /// What is to be predicted by a run of this layout, in the order given. Throws UsageError for a layout in which hosts
  /// have different numbers of ranks, and where neither the run nor the options tell of the network.
  std::vector<comm::RankLayout> layouts(const comm::RankLayout& run) const;
  /// The links that were measured, with what the options say, and what `floors` say of those that nobody measured.
  comm::RankLinks links(const train::MeasuredLinks& measured, const train::MachineFloors& floors) const;
};

}  // namespace lockstep::launcher
