// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/checkpoints_elsewhere.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <sstream>

#include "runtime/base/error.h"
#include "runtime/base/host_name.h"
#include "runtime/checkpoint/store.h"

namespace lockstep::train {

namespace {

std::string words_of(const SeenCheckpoints& seen) {
  std::string text = seen.host;
  for (const std::uint64_t step : seen.steps) text += " " + std::to_string(step);
  return text;
}

SeenCheckpoints seen_in(const std::string& text) {
  SeenCheckpoints seen;
  std::istringstream words(text);
  words >> seen.host;
  for (std::uint64_t step = 0; words >> step;) seen.steps.push_back(step);
  return seen;
}

/// A host that cannot look has nothing to tell: rank 0's own errors are told where it reads.
std::vector<std::uint64_t> steps_in(const std::filesystem::path& run_dir) {
  try {
    return checkpoint::Store((run_dir / "checkpoints").string()).steps();
  } catch (const StorageError&) {
    return {};
  }
}

}  // namespace

Elsewhere checkpoints_elsewhere(const std::vector<SeenCheckpoints>& ranks, const std::filesystem::path& run_dir) {
  const SeenCheckpoints& first = ranks.front();
  const std::uint64_t newest = first.steps.empty() ? 0 : first.steps.front();
  Elsewhere found;
  for (const SeenCheckpoints& rank : ranks) {
    if (rank.steps.empty() || std::ranges::find(first.steps, rank.steps.front()) != first.steps.end()) continue;
    std::string& text = rank.steps.front() > newest ? found.newer : found.older;
    if (!text.empty()) continue;
    const std::string own =
        newest == 0 ? "none" : fmt::format("{} of step {}", rank.steps.front() > newest ? "only one" : "one", newest);
    text = fmt::format("host {} holds a checkpoint of step {} in {}, and rank 0, on host {}, sees {} there", rank.host,
                       rank.steps.front(), run_dir.string(), first.host, own);
  }
  return found;
}

void look_for_checkpoints_elsewhere(comm::Communicator& communicator, const TrainOptions& options) {
  std::vector<SeenCheckpoints> ranks;
  for (const std::string& text : communicator.all_gather_text(words_of({host_name(), steps_in(options.run_dir)}))) {
    ranks.push_back(seen_in(text));
  }
  if (options.resume == "never") return;
  const Elsewhere found = checkpoints_elsewhere(ranks, options.run_dir);
  if (options.resume == "auto" && !found.newer.empty()) {
    throw UsageError(
        found.newer,
        "Rank 0 alone reads and writes checkpoints. Start it on that host (--hosts: the first one has it), "
        "give all hosts one folder as --run-dir, or copy the checkpoint. --resume never starts anew.");
  }
  if (communicator.rank() != 0) return;
  for (const std::string& text : {found.newer, found.older}) {
    if (!text.empty()) spdlog::warn("{}: it is left alone", text);
  }
}

}  // namespace lockstep::train
