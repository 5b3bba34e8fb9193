// SPDX-License-Identifier: Apache-2.0
// A power failure: of what no fsync has made durable, any part may be missing afterwards. Each system call of a save or
// a prune is recorded, the process dies before call n, and then the calls that were not synced by then are taken back.
#include <algorithm>
#include <map>
#include <set>

#include "tests/runtime/checkpoint/checkpoint_support.h"

namespace lockstep::checkpoint {
namespace {

using enum StorageOperation;

constexpr int kLosesPower = 9;

struct Call {
  StorageOperation operation;
  std::string path;
};

/// Writes each call into `log` before it is made, and dies instead of making call `at`.
StorageHook record_until(std::uint64_t at, const std::string& log) {
  return [=](const StorageCall& call) -> StorageFault {
    if (call.index >= at) ::_exit(kLosesPower);
    std::ofstream(log, std::ios::app) << static_cast<int>(call.operation) << ' ' << call.path << '\n';
    return {};
  };
}

std::vector<Call> calls_in(const std::string& log) {
  std::vector<Call> calls;
  std::ifstream file(log);
  for (int operation; file >> operation;) {
    calls.push_back({static_cast<StorageOperation>(operation), {}});
    std::getline(file >> std::ws, calls.back().path);
  }
  return calls;
}

std::string parent_of(const std::string& path) { return fs::path(path).parent_path().string(); }

bool in_temporary(const std::string& path) { return parent_of(path).find(".tmp-") != std::string::npos; }

/// Where a rename led: a prepared directory to the name before ".tmp-", a damaged checkpoint to the directory made for
/// it just before.
std::string target_of(const Call& rename, const std::vector<Call>& calls) {
  const std::size_t suffix = rename.path.find(".tmp-");
  if (suffix != std::string::npos) return rename.path.substr(0, suffix);
  std::string aside;
  for (const Call& call : calls) {
    if (call.operation == kMakeDirectory && call.path.starts_with(rename.path + ".tmp-")) aside = call.path;
  }
  return aside;
}

/// What the device may not have yet.
struct Volatile {
  std::set<std::string> contents;  // files written and not synced
  std::vector<Call> entries;       // changes of directories that were not synced
  std::map<std::string, std::string> renamed;
};

Volatile volatile_after(const std::vector<Call>& calls) {
  Volatile lost;
  for (const Call& call : calls) {
    if (call.operation == kWrite) lost.contents.insert(call.path);
    if (call.operation == kSync) {
      lost.contents.erase(call.path);
      std::erase_if(lost.entries, [&](const Call& entry) { return parent_of(entry.path) == call.path; });
    }
    if (call.operation == kRename) lost.renamed[call.path] = target_of(call, calls);
    const bool creates_file = call.operation == kOpen && in_temporary(call.path);
    if (creates_file || call.operation == kRename || call.operation == kUnlink || call.operation == kMakeDirectory ||
        call.operation == kRemoveDirectory) {
      lost.entries.push_back(call);
    }
  }
  return lost;
}

/// Where the file of `path` lies by now: its directory may have been renamed, and the rename may have been taken back.
std::string current(const std::string& path, const Volatile& lost) {
  const auto renamed = lost.renamed.find(parent_of(path));
  if (fs::exists(path) || renamed == lost.renamed.end()) return path;
  return (fs::path(renamed->second) / fs::path(path).filename()).string();
}

/// Takes one change of a directory back, as far as its directory is still there. `before` holds the files as they were.
void take_back(const Call& call, const Volatile& lost, const std::string& path, const std::string& before) {
  const fs::path original = before / fs::relative(call.path, path);
  switch (call.operation) {
    case kOpen:
      fs::remove(current(call.path, lost));
      break;
    case kMakeDirectory:
      fs::remove_all(call.path);
      break;
    case kRemoveDirectory:
      fs::create_directory(call.path);
      break;
    case kUnlink:
      if (fs::exists(parent_of(call.path)) && fs::exists(original)) {
        fs::copy_file(original, call.path, fs::copy_options::skip_existing);
      }
      break;
    case kRename:
      if (fs::exists(lost.renamed.at(call.path)) && !fs::exists(call.path)) {
        fs::rename(lost.renamed.at(call.path), call.path);
      }
      break;
    default:
      break;
  }
}

void lose_content(const std::string& path, const std::string& how) {
  if (!fs::exists(path)) return;
  const std::size_t size = fs::file_size(path);
  if (how == "emptied") fs::resize_file(path, 0);
  if (how == "halved") fs::resize_file(path, size / 2);
  if (how == "zeroed") spill(path, std::string(size, '\0'));
}

class PowerFailure {
 public:
  explicit PowerFailure(const Scenario& scenario) : scenario_(scenario) { scenario.prepare(before_); }

  /// Tries every loss at every call up to the action's end.
  void run() {
    for (std::uint64_t at = 0; !done_ && !testing::Test::HasFailure(); ++at) {
      for (const char* how : {"kept", "emptied", "halved", "zeroed"}) {
        // -1: every change kept; 0: all taken back; 1 and up: only that one.
        const Volatile lost = try_loss(at, how, -1);
        for (int only = 0; only <= static_cast<int>(lost.entries.size()); ++only) try_loss(at, how, only);
        if (lost.contents.empty()) break;
      }
    }
  }

 private:
  Volatile try_loss(std::uint64_t at, const std::string& how, int only) {
    SCOPED_TRACE(std::string(scenario_.name) + ", call " + std::to_string(at) + ", content " + how + ", change " +
                 std::to_string(only));
    fs::remove_all(path_);
    fs::remove(log_);
    fs::copy(before_, path_, fs::copy_options::recursive);
    const int outcome = in_child([&] {
      set_storage_hook(record_until(at, log_));
      scenario_.act(path_);
    });
    done_ = outcome == 0;
    EXPECT_TRUE(done_ || outcome == kLosesPower);
    const std::vector<Call> calls = calls_in(log_);
    const Volatile lost = volatile_after(calls);
    for (const std::string& file : lost.contents) lose_content(current(file, lost), how);
    for (int i = static_cast<int>(lost.entries.size()); i > 0; --i) {
      if (only == 0 || only == i) take_back(lost.entries[static_cast<std::size_t>(i - 1)], lost, path_, before_);
    }
    if (done_ && std::string(scenario_.name) != "prune") {
      EXPECT_EQ(store_in(path_).latest()->state.step(), 300u) << "a save that returned is not durable";
    }
    expect_recovers(path_);
    return lost;
  }

  const Scenario& scenario_;
  ScratchDirectory scratch_;
  std::string before_ = scratch_ / "before";
  std::string path_ = scratch_ / "after";
  std::string log_ = scratch_ / "log";
  bool done_ = false;
};

TEST(LostWrites, NeverCostACommittedCheckpoint) {
  for (const Scenario& scenario : scenarios()) PowerFailure(scenario).run();
}

}  // namespace
}  // namespace lockstep::checkpoint
