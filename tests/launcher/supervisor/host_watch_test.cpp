// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/host_watch.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using namespace std::chrono_literals;

/// A watch of host b through a program in place of ssh, which counts its starts in the file `starts`.
class Watched {
 public:
  explicit Watched(const std::string& script) {
    write_text(folder_ / "ssh", "#!/bin/sh\necho x >> " + (folder_ / "starts").string() + "\n" + script);
    std::filesystem::permissions(folder_ / "ssh", std::filesystem::perms::owner_all);
    watch_.emplace(folder_ / "ssh", std::vector<std::string>{"b"}, 6s);
  }

  /// What it has found once it has started ssh so often and that has had time to end, which takes no time here.
  std::optional<std::string> after(std::uintmax_t starts) {
    std::optional<std::string> found;
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!found && std::chrono::steady_clock::now() < end) {
      found = watch_->look();
      if (made() > starts || (made() == starts && ++looks_ > 50)) break;
      std::this_thread::sleep_for(10ms);
    }
    return found;
  }
  std::uintmax_t made() const {
    return std::filesystem::exists(folder_ / "starts") ? std::filesystem::file_size(folder_ / "starts") / 2 : 0;
  }
  const std::filesystem::path& folder() const { return folder_.path(); }

 private:
  Folder folder_;
  std::optional<HostWatch> watch_;
  int looks_ = 0;
};

TEST(HostWatch, FindsAHostThatNoLongerLetsUsIn) {
  Watched watched("test $(wc -l < $(dirname $0)/starts) = 1 || exit 255\necho\n");
  EXPECT_EQ(watched.after(3), "b");
  EXPECT_EQ(watched.made(), 2U);
}

TEST(HostWatch, GoesOnWhereAnotherConnectionIsMade) {
  Watched watched("echo\ntest $(wc -l < $(dirname $0)/starts) = 1 || exec sleep 1000\n");
  EXPECT_EQ(watched.after(2), std::nullopt);
  EXPECT_EQ(watched.made(), 2U);
}

TEST(HostWatch, LeavesAHostThatNeverLetUsIn) {
  Watched watched("echo no key >&2\nexit 255\n");
  EXPECT_EQ(watched.after(1), std::nullopt);
  EXPECT_EQ(watched.made(), 1U);
}

TEST(HostWatch, AsksForASignAndWaitsForAConnectionWithinTheLimit) {
  Watched watched("echo \"$@\" > $(dirname $0)/arguments\necho\nexec sleep 1000\n");
  const std::filesystem::path file = watched.folder() / "arguments";
  for (int i = 0; i < 6000 && read_text(file).empty(); ++i) std::this_thread::sleep_for(10ms);
  const std::string arguments = read_text(file);
  for (const char* word :
       {"ServerAliveInterval=1", "ServerAliveCountMax=2", "ConnectTimeout=3", "BatchMode=yes", " b\n"}) {
    EXPECT_THAT(arguments, testing::HasSubstr(word));
  }
}

}  // namespace
}  // namespace lockstep::launcher
