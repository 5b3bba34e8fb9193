// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/output_writer.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/files/storage_faults.h"
#include "runtime/train/record/metrics.h"

namespace lockstep::train {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::chrono::minutes kLong{5};
constexpr std::chrono::milliseconds kShort{50};

/// Metrics in a folder whose disk the test breaks.
class OutputWriterTest : public testing::Test {
 protected:
  OutputWriterTest() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-output-XXXXXX").string();
    run_dir_ = ::mkdtemp(pattern.data());
  }
  ~OutputWriterTest() override {
    metrics_.reset();
    output_.reset();
    set_storage_hook({});
    fs::remove_all(run_dir_);
  }

  void begin(std::size_t most_bytes = OutputWriter::kMostBytes) {
    output_.emplace(
        [this](const std::string& trouble) {
          const std::lock_guard lock(mutex_);
          troubles_.push_back(trouble);
        },
        most_bytes);
    metrics_.emplace(*output_, run_dir_, 0, false);
    ASSERT_TRUE(output_->flush(kLong));
  }
  /// Asks `fault` before each write to metrics.jsonl.
  void on_write(std::function<StorageFault()> fault) {
    set_storage_hook([fault = std::move(fault)](const StorageCall& call) {
      const bool metrics = call.operation == StorageOperation::kWrite && call.path.ends_with("metrics.jsonl");
      return metrics ? fault() : StorageFault{};
    });
  }
  void steps(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t step = first; step <= last; ++step) metrics_->step({.step = step});
  }
  /// Writes step 1. From there no write returns before there is an answer.
  void hang_in_step_1(std::promise<void>& answer) {
    const auto asked = std::make_shared<std::atomic<bool>>(false);
    on_write([asked, answered = answer.get_future().share()]() -> StorageFault {
      *asked = true;
      answered.wait();
      return {};
    });
    steps(1, 1);
    output_->nudge();
    while (!*asked) std::this_thread::yield();
  }
  std::string content(const fs::path& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// The steps of the lines, which have to be whole.
  std::vector<std::uint64_t> lines() const {
    std::vector<std::uint64_t> steps;
    std::istringstream in(content(run_dir_ / "metrics.jsonl"));
    for (std::string line; std::getline(in, line);) {
      const std::string begin = "{\"step\":";
      EXPECT_TRUE(line.starts_with(begin) && line.ends_with("}")) << line;
      steps.push_back(std::stoull(line.substr(begin.size())));
    }
    return steps;
  }
  std::vector<std::string> troubles() {
    const std::lock_guard lock(mutex_);
    return troubles_;
  }
  static std::vector<std::uint64_t> numbers(std::uint64_t last) {
    std::vector<std::uint64_t> all(last);
    for (std::uint64_t i = 0; i < last; ++i) all[i] = i + 1;
    return all;
  }

  fs::path run_dir_;
  std::mutex mutex_;
  std::vector<std::string> troubles_;
  std::optional<OutputWriter> output_;
  std::optional<Metrics> metrics_;
};

TEST_F(OutputWriterTest, WritesWhatItIsToldInItsOrder) {
  begin();
  steps(1, 1000);
  EXPECT_TRUE(output_->flush(kLong));
  EXPECT_EQ(lines(), numbers(1000));
  EXPECT_THAT(output_->lost(), IsEmpty());
}

TEST_F(OutputWriterTest, WritesWithoutBeingAsked) {
  begin();
  steps(1, 3);
  while (lines().size() < 3) std::this_thread::yield();
}

TEST_F(OutputWriterTest, TriesAgainAndCompletesWhatWasWrittenInPart) {
  begin();
  // Each kind of failure, and in between a part of a line.
  std::atomic<int> calls{0};
  on_write([&]() -> StorageFault {
    constexpr int kErrors[] = {EIO, EINTR, ENOSPC, ESTALE, EDQUOT};
    const int call = calls++;
    if (call % 2 == 0 && call < 10) return {.error = kErrors[call / 2]};
    return {.at_most = static_cast<std::size_t>(100 + call)};
  });
  steps(1, 200);
  while (!output_->flush(kLong)) {
  }
  EXPECT_EQ(lines(), numbers(200)) << "no line twice, none cut";
  EXPECT_GT(calls, 100);
  EXPECT_THAT(output_->lost(), IsEmpty());
}

TEST_F(OutputWriterTest, GoesOnWithoutADiskAndCountsWhatIsNotWritten) {
  begin();
  std::atomic<int> error{EROFS};
  on_write([&]() -> StorageFault { return {.error = error}; });
  steps(1, 5);
  EXPECT_FALSE(output_->flush(kLong)) << "it does not wait for what does not pass by itself";
  steps(6, 10);
  EXPECT_FALSE(output_->flush(kLong));
  EXPECT_EQ(output_->lost().at((run_dir_ / "metrics.jsonl").string()), 10u);
  EXPECT_THAT(output_->lost(), SizeIs(1)) << "TensorBoard's file is written";
  ASSERT_THAT(troubles(), SizeIs(1)) << "once";
  EXPECT_THAT(troubles()[0], HasSubstr("metrics.jsonl: Read-only file system; training goes on"));
  error = 0;
  EXPECT_TRUE(output_->flush(kLong));
  EXPECT_EQ(lines(), numbers(10)) << "what waited is written once that works";
  EXPECT_THAT(output_->lost(), IsEmpty());
}

TEST_F(OutputWriterTest, NeverWaitsForADiskThatDoesNotAnswer) {
  constexpr std::size_t kRoom = 20'000;
  begin(kRoom);
  std::promise<void> answer;
  hang_in_step_1(answer);
  steps(2, 1000);  // far more than there is room for
  EXPECT_FALSE(output_->flush(kShort));
  EXPECT_FALSE(output_->perform([] {}, kShort));
  const std::uint64_t lost = output_->lost().at((run_dir_ / "metrics.jsonl").string());
  EXPECT_EQ(lost, 1000u) << "written so far: none";
  EXPECT_THAT(troubles(), Contains(HasSubstr("is dropped from here on: the disk does not answer; training goes on")));
  answer.set_value();
  EXPECT_TRUE(output_->flush(kLong));
  const std::uint64_t dropped = output_->lost().at((run_dir_ / "metrics.jsonl").string());
  EXPECT_EQ(lines(), numbers(1000 - dropped)) << "the first of them, whole";
  EXPECT_LE(content(run_dir_ / "metrics.jsonl").size(), kRoom);
}

TEST_F(OutputWriterTest, EndsBesideACallThatNeverReturns) {
  begin();
  std::promise<void> never;
  hang_in_step_1(never);
  metrics_.reset();
  output_.reset();
  never.set_value();
  while (lines().empty()) std::this_thread::yield();  // the thread is done with the hook
}

TEST_F(OutputWriterTest, DoesWorkBehindWhatWasTold) {
  begin();
  steps(1, 3);
  std::vector<std::uint64_t> seen;
  EXPECT_TRUE(output_->perform([&] { seen = lines(); }, kLong));
  EXPECT_EQ(seen, numbers(3));
  EXPECT_THROW(output_->perform([] { throw StorageError("no"); }, kLong), StorageError);
  EXPECT_TRUE(output_->perform([] {}, kLong)) << "and goes on";
}

TEST_F(OutputWriterTest, SaysThatTheFileIsGone) {
  begin();
  steps(1, 1);
  output_->flush(kLong);
  fs::remove(run_dir_ / "metrics.jsonl");
  steps(2, 2);
  output_->flush(kLong);
  EXPECT_THROW(steps(3, 3), StorageError);
  EXPECT_FALSE(fs::exists(run_dir_ / "metrics.jsonl"));
}

TEST_F(OutputWriterTest, WaitsForAFullDiskOnlyAMoment) {
  begin();
  std::atomic<int> error{ENOSPC};
  on_write([&]() -> StorageFault { return {.error = error}; });
  steps(1, 3);
  EXPECT_FALSE(output_->flush(kLong)) << "it has failed a few times, which may pass later";
  error = 0;
  EXPECT_TRUE(output_->flush(kLong));
  EXPECT_EQ(lines(), numbers(3));
}

TEST_F(OutputWriterTest, GoesOnWhereNoFileCanBeOpened) {
  std::atomic<int> error{EACCES};
  set_storage_hook([&](const StorageCall& call) {
    return StorageFault{.error = call.operation == StorageOperation::kOpen ? error.load() : 0};
  });
  output_.emplace([](const std::string&) {});
  metrics_.emplace(*output_, run_dir_, 0, false);
  steps(1, 3);
  EXPECT_FALSE(output_->flush(kLong));
  EXPECT_EQ(output_->lost().at((run_dir_ / "metrics.jsonl").string()), 3u);
  EXPECT_THAT(output_->lost(), SizeIs(2)) << "TensorBoard's, too";
  error = 0;
  EXPECT_TRUE(output_->flush(kLong));
  EXPECT_EQ(lines(), numbers(3));
}

TEST_F(OutputWriterTest, SetsAsideWhatItCannotReadSoThatNoStepStandsTwice) {
  const std::string before = "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n";
  std::ofstream(run_dir_ / "metrics.jsonl") << before;
  set_storage_hook([](const StorageCall& call) {
    const bool is_metrics = call.operation == StorageOperation::kRead && call.path.ends_with("metrics.jsonl");
    return StorageFault{.error = is_metrics ? EIO : 0};
  });
  output_.emplace([](const std::string&) {});
  metrics_.emplace(*output_, run_dir_, 2, false);
  steps(3, 3);
  EXPECT_TRUE(output_->flush(kLong));
  EXPECT_EQ(lines(), std::vector<std::uint64_t>{3});
  EXPECT_EQ(content(run_dir_ / "earlier-1" / "metrics.jsonl"), before);
}

TEST_F(OutputWriterTest, SetsAsideWhatIsNoRegularFile) {
  ASSERT_EQ(mkfifo((run_dir_ / "metrics.jsonl").c_str(), 0600), 0);
  begin();
  steps(1, 2);
  EXPECT_TRUE(output_->flush(kLong));
  EXPECT_EQ(lines(), numbers(2));
  EXPECT_TRUE(fs::is_fifo(run_dir_ / "earlier-1" / "metrics.jsonl"));
}

// As a disk that refuses: said once, counted, and written once that works.
TEST_F(OutputWriterTest, GoesOnBesideAPipeInTheFilesPlace) {
  for (const bool folder : {false, true}) {
    output_.emplace([this](const std::string& trouble) {
      const std::lock_guard lock(mutex_);
      troubles_.push_back(trouble);
    });
    metrics_.emplace(*output_, run_dir_, 0, false);
    const fs::path file = run_dir_ / "metrics.jsonl";
    ASSERT_EQ(folder ? mkdir(file.c_str(), 0700) : mkfifo(file.c_str(), 0600), 0);
    steps(1, 3);
    EXPECT_FALSE(output_->flush(kLong));
    steps(4, 5);
    EXPECT_FALSE(output_->flush(kLong));
    EXPECT_EQ(output_->lost().at(file.string()), 5u);
    EXPECT_THAT(troubles(), SizeIs(1)) << "once";
    fs::remove(file);
    EXPECT_TRUE(output_->flush(kLong));
    EXPECT_EQ(lines(), numbers(5));
    metrics_.reset();
    output_.reset();
    fs::remove(file);
    troubles_.clear();
  }
}

TEST_F(OutputWriterTest, DropsLinesThatNestDeeperThanAStack) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  std::ofstream(run_dir_ / "metrics.jsonl")
      << "{\"step\":1}\n{\"event\":\"eval\",\"step\":1,\"x\":" << deep << "}\n{\"event\":" << deep << ",\"step\":1}\n";
  output_.emplace([](const std::string&) {});
  metrics_.emplace(*output_, run_dir_, 1, false);
  steps(2, 2);
  EXPECT_TRUE(output_->flush(kLong));
  EXPECT_EQ(lines(), numbers(2));
}

}  // namespace
}  // namespace lockstep::train
