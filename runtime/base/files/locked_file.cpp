// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/files/locked_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace lockstep {

Descriptor make_locked_file(const std::string& path) {
  const std::string unfinished = path + ".new";
  Descriptor file(open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return {};
  if (flock(file.get(), LOCK_EX | LOCK_NB) == 0 && rename(unfinished.c_str(), path.c_str()) == 0) return file;
  const int error = errno;
  unlink(unfinished.c_str());
  errno = error;
  return {};
}

Descriptor take_lock(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file || flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return file;
}

}  // namespace lockstep
