// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/train/record/earlier_metrics.h"
#include "runtime/train/record/run_end.h"
#include "runtime/train/record/summary.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// Lines of metrics.jsonl, and a summary.json.
std::vector<std::string> run_record_seeds() {
  return {R"({"step":1,"loss":0.5,"time":1.5})"
          "\n"
          R"({"event":"eval","step":1,"time":2,"loss":0.25})"
          "\n"
          R"({"event":"failed","step":9,"time":3,"exit_code":4,"detail":"x","where":"rank 1"})"
          "\n",
          R"({"status":"done","exit_code":0,"error":null,"step":7,"restarts":0,"steps":7,"weights_digest":"ab"})",
          R"({"status":"failed","exit_code":7,"error":{"message":"a","advice":"b","where":"c"},"step":7})"};
}

/// Deeper than a stack.
std::vector<std::string> deep_records() {
  const std::string deep = std::string(1 << 18, '[') + std::string(1 << 18, ']');
  return {R"({"event":"eval","step":1,"x":)" + deep + "}", R"({"event":)" + deep + R"(,"step":1,"status":"failed"})",
          R"({"status":"failed","error":)" + deep + "}"};
}

/// A directory in memory that lasts as long as the process.
class RunRecord {
 public:
  RunRecord() {
    const bool shared_memory = ::access("/dev/shm", W_OK) == 0;
    std::string pattern =
        (shared_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/lockstep-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) directory_ = pattern;
  }
  ~RunRecord() { std::filesystem::remove_all(directory_); }
  void write(const char* name, std::string_view bytes) const {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
  }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
};

/// The bytes are metrics.jsonl and summary.json of a run that goes on, and of one that ends.
void fuzz_run_record(std::string_view bytes) {
  static const RunRecord run;
  const std::string kept = train::lines_up_to(bytes, 7).text;
  if (train::lines_up_to(kept, 7).text != kept) std::abort();
  with_file(bytes, [](const std::string& path) { train::describes(path, 7, "ab"); });
  const std::chrono::system_clock::time_point since{};
  const train::RunEnd end{.status = train::RunEnd::Status::kFailed, .code = ExitCode::kPeerLost, .step = 7};
  run.write("metrics.jsonl", bytes);
  run.write("summary.json", bytes);
  train::record_event_of_end(run.directory(), since, false);
  train::record_end(run.directory(), end, since);
}

}  // namespace

Target run_record_target() {
  return {.parse = fuzz_run_record, .seeds = run_record_seeds(), .rounds = 3'000, .hostile = deep_records()};
}

}  // namespace lockstep::fuzz
