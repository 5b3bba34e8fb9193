// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/bundle.h"

#include <gmock/gmock.h>

#include <fstream>
#include <iterator>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "tests/support/folder.h"

namespace lockstep::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Bundle : public ::testing::Test {
 protected:
  Bundle() {
    state_.set_step(12);
    write_bundle(path_, state_, {{"model/w", Tensor::from(std::vector<float>{1, -2, 3}, {3})}},
                 "{\"model\": \"mlp\"}\n");
  }
  /// The bundle with other bytes.
  fs::path changed(const std::string& content) {
    const fs::path path = folder_ / "changed.lockstep";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  Folder folder_;
  fs::path path_ = folder_ / "model.lockstep";
  TrainingState state_;
};

TEST_F(Bundle, HoldsTheCheckpoint) {
  const Checkpoint read = read_checkpoint(path_);
  EXPECT_EQ(read.state.step(), 12u);
  ASSERT_TRUE(read.tensors.contains("model/w"));
  EXPECT_EQ(read.tensors.at("model/w").item(2), 3);
  EXPECT_EQ(read_state(path_).step(), 12u);
  EXPECT_THAT(content_of(path_), HasSubstr("{\"model\": \"mlp\"}"));
}

TEST_F(Bundle, LeavesNothingBeside) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path_.parent_path())) {
    names.push_back(entry.path().filename().string());
  }
  EXPECT_THAT(names, testing::ElementsAre("model.lockstep"));
}

TEST_F(Bundle, AChangedByteAnywhereInItsFilesIsSeen) {
  const std::string whole = content_of(path_);
  for (const std::string part : {"\"step\"", "\"model/w\""}) {
    std::string content = whole;
    ASSERT_NE(content.find(part), std::string::npos) << part;
    content[content.find(part) + 2] ^= 1;
    EXPECT_THROW(read_checkpoint(changed(content)), StorageError) << part;
  }
  std::string content = whole;
  const std::string one("\x00\x00\x80\x3f\x00\x00\x00\xc0", 8);  // 1, -2
  content[content.find(one) + 2] ^= 1;
  EXPECT_THAT([&] { read_checkpoint(changed(content)); },
              ThrowsMessage<StorageError>(HasSubstr("changed.lockstep: tensor 'model/w' is damaged")));
  EXPECT_THROW(read_checkpoint(changed(whole.substr(0, whole.size() / 2))), StorageError);
}

TEST_F(Bundle, HasNoLinksAndNoOtherArchives) {
  std::string content = content_of(path_);
  // The type of the first member's header becomes that of a symbolic link; the checksum follows.
  content[156] = '2';
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(content[i]);
  for (std::size_t digit = 154; digit > 148; sum /= 8) content[--digit] = static_cast<char>('0' + sum % 8);
  EXPECT_THAT([&] { read_checkpoint(changed(content)); }, ThrowsMessage<StorageError>(HasSubstr("is a link")));
  EXPECT_THAT([&] { read_checkpoint(changed(std::string(1024, '\0'))); },
              ThrowsMessage<StorageError>(HasSubstr("is no bundle: it holds no manifest.json")));
  EXPECT_THAT([&] { write_bundle(folder_ / "model.tar", state_, {}, ""); },
              ThrowsMessage<UsageError>(HasSubstr("must end in .lockstep")));
}

}  // namespace
}  // namespace lockstep::checkpoint
