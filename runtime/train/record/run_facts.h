// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::train {

/// The facts about a run that its header shows a person.
struct RunFacts {
  std::string job;
  std::string model;  ///< its kind
  std::uint64_t parameters = 0;
  std::uint64_t samples = 0;
  std::string sample_shape;
  std::int64_t classes = 0;  ///< 0: none
  std::optional<std::uint64_t> eval_samples;
  std::uint64_t steps = 0;
  std::uint64_t global_batch = 0;
  std::int64_t steps_per_epoch = 0;
  int ranks = 1;
  int threads = 1;        ///< of a rank
  std::string transport;  ///< what carries data between CPUs of several hosts; else empty
  std::string device;
  std::string precision;
  std::filesystem::path run_dir;
  std::string host;                  ///< on which rank 0 writes it, where there are several
  std::vector<std::string> remarks;  ///< lines of their own
};

/// A few aligned lines, "name  value" each, without the end of the last one; `bold` draws the job's name so.
std::string header_text(const RunFacts& facts, bool bold);

}  // namespace lockstep::train
