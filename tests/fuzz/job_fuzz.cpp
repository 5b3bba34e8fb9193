// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/job/job.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// The ready jobs are seeds of libFuzzer beside this one (scripts/fuzz).
std::vector<std::string> job_seeds() {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt");
  return {std::string((std::istreambuf_iterator<char>(file)), {})};
}

/// As a job, and as the value of an override; neither may throw whatever it says.
void fuzz_job(std::string_view bytes) {
  job::check_text(bytes, "job.pbtxt", {}, ".");
  const std::string override_text = "model=" + std::string(bytes);
  job::check_text("name: 'x'", "job.pbtxt", {&override_text, 1}, ".");
}

bool is_valid_job(const std::string& seed) {
  return job::check_text(seed, "job.pbtxt", {}, LOCKSTEP_SOURCE_DIR "/configs").diagnostics.empty();
}

}  // namespace

Target job_target() { return {.parse = fuzz_job, .seeds = job_seeds(), .rounds = 3'000, .is_valid = is_valid_job}; }

}  // namespace lockstep::fuzz
