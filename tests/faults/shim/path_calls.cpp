// SPDX-License-Identifier: Apache-2.0
// The C library's functions on paths, folders and what a file is, as calls.cpp has those on open files.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tests/faults/shim/act.h"

using namespace lockstep::faults;

extern "C" {

int rename(const char* from, const char* to) __THROW {
  const int result = rename_file(shim().files.below(from), shim().files.below(to),
                                 [&] { return next<int(const char*, const char*)>("rename")(from, to); });
  note_memory(to, result == 0);
  return result;
}

int unlink(const char* path) __THROW {
  return on_path("unlink", shim().files.below(path), false, [&] { return next<int(const char*)>("unlink")(path); });
}

int unlinkat(int parent, const char* path, int flags) __THROW {
  return on_path((flags & AT_REMOVEDIR) != 0 ? "rmdir" : "unlink", shim().files.below(parent, path), false,
                 [&] { return next<int(int, const char*, int)>("unlinkat")(parent, path, flags); });
}

int remove(const char* path) __THROW {
  const std::string watched = shim().files.below(path);
  const bool folder = !watched.empty() && is_directory(AT_FDCWD, path);
  return on_path(folder ? "rmdir" : "unlink", watched, false, [&] { return next<int(const char*)>("remove")(path); });
}

int rmdir(const char* path) __THROW {
  return on_path("rmdir", shim().files.below(path), false, [&] { return next<int(const char*)>("rmdir")(path); });
}

int mkdir(const char* path, mode_t mode) __THROW {
  return on_path("mkdir", shim().files.below(path), true,
                 [&] { return next<int(const char*, mode_t)>("mkdir")(path, mode); });
}

int stat(const char* path, struct stat* status) __THROW {
  return on_path("stat", shim().files.below(path), false,
                 [&] { return next<int(const char*, struct stat*)>("stat")(path, status); });
}

int lstat(const char* path, struct stat* status) __THROW {
  return on_path("stat", shim().files.below(path), false,
                 [&] { return next<int(const char*, struct stat*)>("lstat")(path, status); });
}

int fstat(int descriptor, struct stat* status) __THROW {
  return on_open_file("stat", descriptor, false,
                      [&] { return next<int(int, struct stat*)>("fstat")(descriptor, status); });
}

int fstat64(int descriptor, struct stat64* status) __THROW {
  return on_open_file("stat", descriptor, false,
                      [&] { return next<int(int, struct stat64*)>("fstat64")(descriptor, status); });
}

int access(const char* path, int mode) __THROW {
  return on_path("stat", shim().files.below(path), false,
                 [&] { return next<int(const char*, int)>("access")(path, mode); });
}

int flock(int descriptor, int operation) __THROW {
  return on_open_file("lock", descriptor, false, [&] { return next<int(int, int)>("flock")(descriptor, operation); });
}

DIR* opendir(const char* path) {
  DIR* directory = nullptr;
  const auto make = [&] {
    directory = next<DIR*(const char*)>("opendir")(path);
    return directory == nullptr ? -1 : dirfd(directory);
  };
  open_file(shim().files.below(path), O_RDONLY | O_DIRECTORY, make);
  return directory;
}

int closedir(DIR* directory) {
  shim().files.closed(dirfd(directory));
  return next<int(DIR*)>("closedir")(directory);
}

dirent* readdir(DIR* directory) { return next_entry(directory, "readdir"); }
dirent64* readdir64(DIR* directory) { return reinterpret_cast<dirent64*>(next_entry(directory, "readdir64")); }

}  // extern "C"
