// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/walk.h"

#include <gmock/gmock.h>

#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

std::vector<std::string> files_below(const std::string& path) {
  std::vector<std::string> names;
  walk({path}, [&](const std::filesystem::directory_entry& entry) {
    if (!entry.is_directory()) names.push_back(entry.path().lexically_relative(path));
  });
  return names;
}

TEST(Walk, MeetsFilesBelowALinkBackOnce) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path("a/b"));
  std::filesystem::create_directories(folder.path("c"));
  folder.write_text("a/b/x", "1");
  std::filesystem::create_directory_symlink("..", folder.path("a/b/up"));
  std::filesystem::create_directory_symlink("../..", folder.path("a/b/top"));
  EXPECT_THAT(files_below(folder.path("a")), testing::ElementsAre("b/x"));
  // The same folder is met again where it is not within itself.
  std::filesystem::create_directory_symlink("../a/b", folder.path("c/linked"));
  std::filesystem::create_directory_symlink("../a/b", folder.path("c/again"));
  std::filesystem::remove(folder.path("a/b/up"));
  std::filesystem::remove(folder.path("a/b/top"));
  EXPECT_THAT(files_below(folder.path("c")), testing::UnorderedElementsAre("linked/x", "again/x"));
}

}  // namespace
}  // namespace lockstep::data
