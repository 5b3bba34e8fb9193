// SPDX-License-Identifier: Apache-2.0
#include "runtime/job/job_text.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "runtime/base/error.h"

namespace lockstep::job {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::ThrowsMessage;

class JobText : public testing::Test {
 protected:
  JobText() {
    std::string pattern = testing::TempDir() + "lockstep-job-text-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    mkfifo((folder_ / "pipe").c_str(), 0600);
  }
  ~JobText() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(JobText, OfAFileHasItsFirstBytes) {
  std::ofstream(folder_ / "job") << "name: \"a\"";
  EXPECT_EQ(read_job_text(folder_ / "job", 100), "name: \"a\"");
  EXPECT_EQ(read_job_text(folder_ / "job", 4), "name");
  std::ofstream(folder_ / "empty") << "";
  EXPECT_EQ(read_job_text(folder_ / "empty", 100), "");
}

TEST_F(JobText, OfAPipeIsAllThatItsWriterWrites) {
  std::ofstream pipe(folder_ / "pipe", std::ios::in | std::ios::out);  // which waits for nobody
  std::thread writer([&] {
    pipe << "name: " << std::flush;
    std::this_thread::sleep_for(50ms);
    pipe << "\"a\"" << std::flush;
    pipe.close();
  });
  EXPECT_EQ(read_job_text(folder_ / "pipe", 100), "name: \"a\"");
  writer.join();
}

TEST_F(JobText, OfAPipeWithoutAWriterIsAnError) {
  EXPECT_THAT([&] { read_job_text(folder_ / "pipe", 100); },
              ThrowsMessage<StorageError>(HasSubstr("a pipe into which nobody writes")));
}

TEST_F(JobText, ThatIsNotThereSaysWhy) {
  EXPECT_THAT([&] { read_job_text(folder_, 100); }, ThrowsMessage<StorageError>(HasSubstr("it is a directory")));
  EXPECT_THAT([&] { read_job_text(folder_ / "none", 100); }, ThrowsMessage<StorageError>(HasSubstr("No such file")));
}

}  // namespace
}  // namespace lockstep::job
