// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "tests/faults/shim/journal.h"
#include "tests/faults/shim/plan.h"
#include "tests/faults/shim/watched_files.h"

// The common part of the shim's functions: each asks the plan, acts, and tells the journal.

namespace lockstep::faults {

/// The C library's own function of that name.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

struct Shim {
  Shim() : files(std::getenv("LOCKSTEP_FAULTS_FOLDER") == nullptr ? "" : std::getenv("LOCKSTEP_FAULTS_FOLDER")) {}

  WatchedFiles files;
  Plan plan;
  Journal journal;
  std::recursive_mutex order;  ///< so that the journal has the order of the calls
};

/// Never destroyed: a program may close files after its destructors have run.
inline Shim& shim() {
  static Shim* const instance = new Shim;
  return *instance;
}

inline std::string name_of(const Fault& fault) {
  if (fault.kills) return fault.halves ? "torn" : "kill";
  if (fault.hangs) return "hang";
  if (fault.halves) return "short";
  return fault.error == 0 ? "" : std::to_string(fault.error);
}

/// Makes the call, or what the plan makes of it. `make` gets the bytes that it may transfer; what it returns is
/// returned. `tell` adds to the outcome what the journal has to know.
template <class Make, class Tell>
long act(Call call, std::size_t bytes, Make&& make, Tell&& tell) {
  Shim& all = shim();
  std::unique_lock lock(all.order, std::defer_lock);
  if (all.journal.is_kept()) lock.lock();
  const Fault fault = all.plan.next(call);
  Outcome outcome;
  if (fault.hangs) {
    if (all.journal.is_kept()) all.journal.add(all.plan.role(), call, name_of(fault), {.result = -EINTR});
    lock = {};  // the calls of other threads go on
    for (;;) pause();
  }
  if (fault.error != 0 && call.operation != "close") {
    outcome.result = -1;
    errno = fault.error;
  } else if (!fault.kills || fault.halves) {
    const std::size_t half = bytes > 1 ? bytes / 2 : bytes;
    outcome.result = make(fault.halves ? half : bytes);
    if (fault.error != 0) {
      outcome.result = -1;
      errno = fault.error;
    }
  }
  const int error = errno;
  tell(outcome);
  if (outcome.result < 0) outcome.result = -error;
  if (all.journal.is_kept()) all.journal.add(all.plan.role(), call, name_of(fault), outcome);
  if (fault.kills) std::raise(SIGKILL);
  errno = error;
  return outcome.result < 0 ? -1 : outcome.result;
}

template <class Make>
long act(Call call, std::size_t bytes, Make&& make) {
  return act(std::move(call), bytes, make, [](Outcome&) {});
}

template <class Make>
int act(Call call, Make&& make) {
  return static_cast<int>(act(std::move(call), 0, [&](std::size_t) -> long { return make(); }));
}

/// Notes what was made in the memory that all processes share: nothing of it may stay.
inline void note_memory(const std::string& path, bool made) {
  const Shim& all = shim();
  if (!made || !all.journal.is_kept() || !path.starts_with("/dev/shm/") || !all.files.below(path.c_str()).empty())
    return;
  const int error = errno;
  all.journal.add(all.plan.role(), {.operation = "memory", .path = path}, "", {});
  errno = error;
}

template <class Make>
int open_file(const std::string& path, int flags, Make&& make) {
  if (path.empty()) return make();
  const auto descriptor = static_cast<int>(act(
      {.operation = "open", .path = path, .grows = (flags & O_CREAT) != 0}, 0,
      [&](std::size_t) -> long { return make(); }, [&](Outcome& outcome) { outcome.flags = flags; }));
  if (descriptor >= 0) shim().files.opened(descriptor, path);
  return descriptor;
}

inline FILE* open_stream(const char* path, const char* mode, const char* name) {
  const auto make = [&] { return next<FILE*(const char*, const char*)>(name)(path, mode); };
  const std::string watched = shim().files.below(path);
  if (watched.empty()) return make();
  FILE* file = nullptr;
  const bool appends = mode[0] == 'a';
  const int flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY | O_CREAT | (appends ? O_APPEND : O_TRUNC);
  open_file(watched, flags, [&] { return (file = make()) == nullptr ? -1 : fileno(file); });
  return file;
}

template <class Make>
ssize_t read_from(int descriptor, std::size_t bytes, Make&& make) {
  const std::string path = shim().files.of(descriptor);
  if (path.empty()) return make(bytes);
  return act({.operation = "read", .path = path}, bytes, make);
}

template <class Make>
ssize_t write_to(int descriptor, const void* data, std::size_t bytes, off_t offset, Make&& make) {
  Shim& all = shim();
  const std::string path = all.files.of(descriptor);
  const auto tell = [&](Outcome& outcome) {
    if (outcome.result <= 0) return;
    const off_t end = lseek(descriptor, 0, SEEK_CUR);
    outcome.offset = offset >= 0 ? offset : end - outcome.result;
    outcome.data = {static_cast<const char*>(data), static_cast<std::size_t>(outcome.result)};
  };
  if (!path.empty()) return act({.operation = "write", .path = path, .grows = true}, bytes, make, tell);
  const ssize_t result = make(bytes);
  if (result > 0 && all.journal.is_kept() && all.journal.is_stdout(descriptor)) {
    const int error = errno;
    Outcome outcome{.result = result, .data = {static_cast<const char*>(data), static_cast<std::size_t>(result)}};
    all.journal.add(all.plan.role(), {.operation = "say"}, "", outcome);
    errno = error;
  }
  return result;
}

template <class Make>
int on_open_file(const char* operation, int descriptor, bool grows, Make&& make) {
  const std::string path = shim().files.of(descriptor);
  return path.empty() ? make() : act({.operation = operation, .path = path, .grows = grows}, make);
}

template <class Make>
int on_path(const char* operation, const std::string& path, bool grows, Make&& make) {
  return path.empty() ? make() : act({.operation = operation, .path = path, .grows = grows}, make);
}

/// The path of a descriptor that is to be closed. It is forgotten before: as soon as it is closed, another thread may
/// be given its number.
inline std::string forget(int descriptor) {
  std::string path = shim().files.of(descriptor);
  shim().files.closed(descriptor);
  return path;
}

template <class Make>
int rename_file(const std::string& from, const std::string& to, Make&& make) {
  if (from.empty() && to.empty()) return make();
  return static_cast<int>(act(
      {.operation = "rename", .path = from, .grows = true}, 0, [&](std::size_t) -> long { return make(); },
      [&](Outcome& outcome) { outcome.other = to; }));
}

template <class Make>
int cut(const char* operation, const std::string& path, off_t length, Make&& make) {
  if (path.empty()) return make();
  return static_cast<int>(act(
      {.operation = operation, .path = path}, 0, [&](std::size_t) -> long { return make(); },
      [&](Outcome& outcome) { outcome.offset = length; }));
}

inline dirent* next_entry(DIR* directory, const char* name) {
  const auto make = [&] { return next<dirent*(DIR*)>(name)(directory); };
  const std::string path = shim().files.of(dirfd(directory));
  if (path.empty()) return make();
  dirent* entry = nullptr;
  const int result = act({.operation = "list", .path = path}, [&] {
    errno = 0;  // the function's only word for a failure
    entry = make();
    return entry == nullptr && errno != 0 ? -1 : 0;
  });
  return result < 0 ? nullptr : entry;
}

/// The mode of an open that creates a file; 0 of any other.
inline mode_t mode_in(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

inline bool is_directory(int parent, const char* path) {
  struct stat status {};
  return next<int(int, const char*, struct stat*, int)>("fstatat")(parent, path, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(status.st_mode);
}

}  // namespace lockstep::faults
