// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "tests/runtime/checkpoint/checkpoint_support.h"

namespace lockstep::checkpoint {
namespace {

using enum StorageOperation;

/// Tries `scenario` with a hook made for each call index, until one run makes fewer calls than that. `after` looks at
/// the directory and at the error, which is empty when there was none.
void at_every_call(const Scenario& scenario,
                   const std::function<StorageFault(const StorageCall&, std::uint64_t)>& fault,
                   const std::function<void(const std::string&, const std::string&)>& after) {
  SCOPED_TRACE(scenario.name);
  const ScratchDirectory scratch;
  scenario.prepare(scratch / "before");
  bool reached = true;
  for (std::uint64_t at = 0; reached && !testing::Test::HasFailure(); ++at) {
    SCOPED_TRACE("call " + std::to_string(at));
    const std::string path = scratch / std::to_string(at);
    fs::copy(scratch / "before", path, fs::copy_options::recursive);
    reached = false;
    std::string message;
    try {
      const ScopedHook hook([&](const StorageCall& call) {
        reached |= call.index == at;
        return fault(call, at);
      });
      scenario.act(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage);
      EXPECT_FALSE(error.advice().empty());
      message = error.what();
    }
    after(path, message);
    expect_recovers(path);
    fs::remove_all(path);
  }
}

bool has_temporary(const std::string& path) {
  const std::vector<std::string> names = names_in(path);
  return std::ranges::any_of(names, [](const std::string& name) { return name.find(".tmp-") != std::string::npos; });
}

TEST(StorageFault, OfOneCallIsRetried) {
  for (const Scenario& scenario : scenarios()) {
    for (const int error : {ENOSPC, EIO, EINTR}) {
      SCOPED_TRACE(strerror(error));
      at_every_call(
          scenario,
          [=](const StorageCall& call, std::uint64_t at) { return StorageFault{call.index == at ? error : 0}; },
          [](const std::string&, const std::string& message) { EXPECT_EQ(message, ""); });
    }
  }
}

TEST(StorageFault, AShortTransferIsCompleted) {
  for (const Scenario& scenario : scenarios()) {
    for (const std::size_t at_most : {1, 7}) {
      at_every_call(
          scenario,
          [=](const StorageCall& call, std::uint64_t at) {
            return call.index == at ? StorageFault{0, at_most} : StorageFault{};
          },
          [](const std::string&, const std::string& message) { EXPECT_EQ(message, ""); });
    }
  }
}

TEST(StorageFault, ThatStaysEndsTheSaveAndLeavesNoTemporaryFiles) {
  const auto disk_is_full = [](const StorageCall& call, std::uint64_t at) {
    const bool needs_space = call.operation == kOpen || call.operation == kWrite || call.operation == kSync ||
                             call.operation == kRename || call.operation == kMakeDirectory;
    return StorageFault{needs_space && call.index >= at ? ENOSPC : 0};
  };
  at_every_call(scenarios()[0], disk_is_full, [](const std::string& path, const std::string& message) {
    EXPECT_FALSE(has_temporary(path));
    if (message.empty()) return;
    EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
    EXPECT_NE(message.find(path), std::string::npos) << message;
  });
}

TEST(StorageFault, OfEveryCallFromSomePointOnLeavesWhatWasSaved) {
  for (const Scenario& scenario : scenarios()) {
    for (const int error : {EIO, EACCES}) {
      at_every_call(
          scenario,
          [=](const StorageCall& call, std::uint64_t at) { return StorageFault{call.index >= at ? error : 0}; },
          [](const std::string&, const std::string&) {});
    }
  }
}

TEST(StorageFault, NamesPathOperationAndReason) {
  const ScratchDirectory scratch;
  spill(scratch / "a-file", "");
  try {
    save(scratch / "a-file/checkpoints", 1);
    FAIL() << "a file cannot hold checkpoints";
  } catch (const FileError& error) {
    EXPECT_EQ(error.error(), ENOTDIR);
    EXPECT_FALSE(error.transient());
    EXPECT_EQ(error.what(), "cannot create the directory " + scratch.path() + "/a-file/checkpoints: Not a directory");
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
