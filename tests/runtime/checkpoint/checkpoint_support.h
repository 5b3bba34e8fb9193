// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/files/storage_faults.h"
#include "runtime/checkpoint/store.h"

namespace lockstep::checkpoint {

namespace fs = std::filesystem;

/// A directory of its own for a test, removed at the end. In memory where possible: thousands of fsyncs on a disk take
/// minutes, and what they promise is modelled by the tests themselves.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    const fs::path parent = ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : fs::temp_directory_path();
    std::string pattern = (parent / "lockstep-checkpoint-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    path_ = pattern;
  }
  ~ScratchDirectory() { fs::remove_all(path_); }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Installs a storage hook for a scope.
class ScopedHook {
 public:
  explicit ScopedHook(StorageHook hook) { set_storage_hook(std::move(hook)); }
  ~ScopedHook() { set_storage_hook({}); }
  ScopedHook(const ScopedHook&) = delete;
  ScopedHook& operator=(const ScopedHook&) = delete;
};

inline std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void spill(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

inline TrainingState state_at(std::uint64_t step) {
  TrainingState state;
  state.set_lockstep_version("test");
  state.set_step(step);
  state.add_scaler()->set_scale(static_cast<float>(step) + 0.5f);
  state.mutable_sampler()->set_cursor(step * 32);
  return state;
}

inline std::map<std::string, Tensor> tensors_at(std::uint64_t step) {
  const float value = static_cast<float>(step);
  return {{"layer.weight", Tensor::from<float>({value, 1, 2, 3, 4, 5}, {2, 3})},
          {"layer.running_count", Tensor::from<std::int64_t>({static_cast<std::int64_t>(step)}, {})},
          {"mask", Tensor::from<std::uint8_t>({1, 0, 1}, {3})}};
}

inline bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// That a checkpoint is the one which state_at and tensors_at describe.
inline void expect_content(const Checkpoint& found, std::uint64_t step) {
  EXPECT_EQ(found.state.SerializeAsString(), state_at(step).SerializeAsString());
  const std::map<std::string, Tensor> expected = tensors_at(step);
  ASSERT_EQ(found.tensors.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(same_bytes(found.tensors.at(name), tensor)) << name;
}

/// A store that does not wait between attempts.
inline Store store_in(const std::string& path) { return Store(path, {3, std::chrono::milliseconds(0)}); }

inline void save(const std::string& path, std::uint64_t step) { store_in(path).save(state_at(step), tensors_at(step)); }

/// Runs `work` in a process of its own and returns its exit code, 0 when the work returned, 200 when it threw.
inline int in_child(const std::function<void()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      fprintf(stderr, "in the child: %s\n", error.what());
      ::_exit(200);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Whether QEMU stands between this process and Linux. It answers a process about itself: with a virtual memory of no
/// size, and with another start than other processes read, to which a live writer then looks like one that is gone.
inline bool is_emulated() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int number = 3; number <= 23; ++number) fields >> field;
  return field == "0";
}

/// What happens to the checkpoints while a test interferes.
struct Scenario {
  const char* name;
  std::function<void(const std::string&)> prepare;
  std::function<void(const std::string&)> act;
};

inline void flip_bit(const std::string& path, std::size_t byte, int bit) {
  std::string content = slurp(path);
  content.at(byte) = static_cast<char>(content.at(byte) ^ (1 << bit));
  spill(path, content);
}

/// In every scenario 100 and 200 are committed beforehand, and 200 must survive whatever happens.
inline const std::vector<Scenario>& scenarios() {
  const auto commit_two = [](const std::string& path) {
    save(path, 100);
    save(path, 200);
  };
  static const std::vector<Scenario> list = {
      {"save", commit_two, [](const std::string& path) { save(path, 300); }},
      {"save over a damaged one",
       [=](const std::string& path) {
         commit_two(path);
         save(path, 300);
         flip_bit(path + "/step-00000300/tensors.safetensors", 280, 3);
       },
       [](const std::string& path) { save(path, 300); }},
      {"prune",
       [=](const std::string& path) {
         save(path, 50);
         commit_two(path);
       },
       [](const std::string& path) { store_in(path).prune(1); }},
  };
  return list;
}

/// What must hold after any interruption: 200 or newer is found whole, and a run that goes on leaves nothing behind.
inline void expect_recovers(const std::string& path) {
  const std::optional<Checkpoint> latest = store_in(path).latest();
  ASSERT_TRUE(latest.has_value());
  EXPECT_GE(latest->state.step(), 200u);
  expect_content(*latest, latest->state.step());
  for (const ScanEntry& entry : store_in(path).scan()) {
    const bool half_deleted = entry.step < 200 && !entry.damage.empty();
    EXPECT_FALSE(half_deleted && fs::exists(entry.path + "/manifest.json")) << entry.damage;
  }
  save(path, 300);
  save(path, 400);
  store_in(path).prune(2);
  EXPECT_EQ(names_in(path), (std::vector<std::string>{"step-00000300", "step-00000400"}));
  expect_content(*store_in(path).latest(), 400);
  expect_content(*store_in(path).latest(400), 300);
}

}  // namespace lockstep::checkpoint
