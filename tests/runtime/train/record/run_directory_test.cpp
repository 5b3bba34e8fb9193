// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/run_directory.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>

#include "runtime/base/files/storage_faults.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;

/// A run of one rank whose disk and log the test has.
class RunDirectoryTest : public testing::Test {
 protected:
  RunDirectoryTest() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-run-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
  }
  ~RunDirectoryTest() override {
    set_storage_hook({});
    spdlog::set_default_logger(logger_);
    fs::remove_all(folder_);
  }
  std::string metrics() const {
    std::ifstream in(folder_ / "metrics.jsonl");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path folder_;
  std::ostringstream log_;
  std::shared_ptr<spdlog::logger> logger_ = spdlog::default_logger();
};

TEST_F(RunDirectoryTest, ASaveWaitsForTheStepsBeforeItHoweverSlowTheDiskIs) {
  TrainOptions options;
  options.run_dir = folder_;
  RunDirectory record(options, 1, "", 0.0);
  record.begin(0, 0, 0, std::nullopt, "", "{}");
  std::promise<void> answer;
  set_storage_hook([answered = answer.get_future().share()](const StorageCall& call) {
    if (call.path.ends_with("metrics.jsonl")) answered.wait();
    return StorageFault{};
  });
  record.step({.step = 1});
  const auto saved = std::async(std::launch::async, [&] { record.saving(1); });
  EXPECT_EQ(saved.wait_for(std::chrono::seconds(5)), std::future_status::timeout);
  EXPECT_THAT(metrics(), IsEmpty());
  answer.set_value();
  saved.wait();
  EXPECT_THAT(metrics(), HasSubstr("{\"step\":1"));
  EXPECT_THAT(log_.str(), HasSubstr("metrics.jsonl: the disk is slow; the checkpoint of step 1 waits"));
}

TEST_F(RunDirectoryTest, ASaveDoesNotWaitForADiskThatRefuses) {
  TrainOptions options;
  options.run_dir = folder_;
  RunDirectory record(options, 1, "", 0.0);
  record.begin(0, 0, 0, std::nullopt, "", "{}");
  set_storage_hook(
      [](const StorageCall& call) { return StorageFault{.error = call.path.ends_with("metrics.jsonl") ? ENOSPC : 0}; });
  record.step({.step = 1});
  record.saving(1);
  EXPECT_THAT(log_.str(), HasSubstr("No space left on device; training goes on"));
  EXPECT_THAT(log_.str(), testing::Not(HasSubstr("slow")));
}

}  // namespace
}  // namespace lockstep::train
