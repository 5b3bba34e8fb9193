// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/answer_files.h"

#include <gmock/gmock.h>

#include <array>

#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::array<std::string_view, 3> kEndings{".nii", ".nii.gz", ".npy"};

class AnswerFilesTest : public testing::Test {
 protected:
  AnswerFilesTest() {
    std::filesystem::create_directories(folder_.path("scans/sub"));
    for (const char* const name : {"scans/a.nii.gz", "scans/sub/a.nii.gz", "scans/B.NPY", "other.npy"}) {
      folder_.write_text(name, name);
    }
  }
  std::vector<std::string> answers(const std::vector<std::string>& names, std::string_view ending = "") const {
    std::vector<std::string> found;
    for (const AnswerFile& file : files(names, "out", ending)) {
      found.push_back(std::filesystem::path(file.answer).lexically_relative(folder_.path("")).string());
    }
    return found;
  }
  std::vector<AnswerFile> files(const std::vector<std::string>& names, const std::string& out,
                                std::string_view ending = "") const {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(folder_.path(name));
    return answer_files(paths, kEndings, folder_.path(out), ending);
  }

  TemporaryFolder folder_;
};

TEST_F(AnswerFilesTest, HaveTheNamesOfTheirInputsAndTheirPathsBelowAFolder) {
  EXPECT_THAT(answers({"scans", "other.npy"}),
              ElementsAre("out/B.npy", "out/a.nii.gz", "out/sub/a.nii.gz", "out/other.npy"));
  EXPECT_THAT(answers({"scans/"}), ElementsAre("out/B.npy", "out/a.nii.gz", "out/sub/a.nii.gz"));
  EXPECT_THAT(answers({"scans/a.nii.gz"}, ".png"), ElementsAre("out/a.png"));
}

TEST_F(AnswerFilesTest, NoneOverwritesAnotherOrAnInput) {
  EXPECT_THAT(
      [this] {
        answers({"scans/a.nii.gz", "scans/sub"});
      },
      ThrowsMessage<UsageError>(HasSubstr("would both be")));
  EXPECT_THAT([this] { files({"scans"}, "scans/"); },
              ThrowsMessage<UsageError>(HasSubstr("would overwrite the input")));
  std::filesystem::create_directory_symlink(folder_.path("scans"), folder_.path("link"));
  EXPECT_THAT([this] { files({"scans"}, "link"); }, ThrowsMessage<UsageError>(HasSubstr("would overwrite the input")));
}

TEST_F(AnswerFilesTest, TheDigestIsOfNamesAndContent) {
  const DataDigest digest = digest_of(files({"scans"}, "out"));
  EXPECT_EQ(digest.form, "3 files");
  EXPECT_NE(digest_of(files({"scans"}, "other")).labels, digest.labels);
  folder_.write_text("scans/a.nii.gz", "changed");
  EXPECT_NE(digest_of(files({"scans"}, "out")).content, digest.content);
}

}  // namespace
}  // namespace lockstep::data
