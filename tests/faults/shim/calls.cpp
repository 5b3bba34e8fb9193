// SPDX-License-Identifier: Apache-2.0
// The C library's functions on open files, each of which asks the plan first. Loaded before the library (LD_PRELOAD);
// files outside the folder that LOCKSTEP_FAULTS_FOLDER names are not touched.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <string>

#include "tests/faults/shim/act.h"

using namespace lockstep::faults;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  const int descriptor = open_file(shim().files.below(path), flags,
                                   [&] { return next<int(const char*, int, ...)>("open")(path, flags, mode); });
  note_memory(path, descriptor >= 0 && (flags & O_CREAT) != 0);
  return descriptor;
}

char* mkdtemp(char* pattern) {
  char* const path = next<char*(char*)>("mkdtemp")(pattern);
  note_memory(pattern, path != nullptr);
  return path;
}

int shm_open(const char* name, int flags, mode_t mode) {
  const int descriptor = next<int(const char*, int, mode_t)>("shm_open")(name, flags, mode);
  note_memory(std::string("/dev/shm/") + name, descriptor >= 0 && (flags & O_CREAT) != 0);
  return descriptor;
}

int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_file(shim().files.below(path), flags,
                   [&] { return next<int(const char*, int, ...)>("open64")(path, flags, mode); });
}

int openat(int parent, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_in(flags, arguments);
  va_end(arguments);
  return open_file(shim().files.below(parent, path), flags,
                   [&] { return next<int(int, const char*, int, ...)>("openat")(parent, path, flags, mode); });
}

FILE* fopen(const char* path, const char* mode) { return open_stream(path, mode, "fopen"); }
FILE* fopen64(const char* path, const char* mode) { return open_stream(path, mode, "fopen64"); }

int fclose(FILE* file) {
  const std::string path = forget(fileno(file));
  return on_path("close", path, false, [&] { return next<int(FILE*)>("fclose")(file); });
}

int close(int descriptor) {
  const std::string path = forget(descriptor);
  return on_path("close", path, false, [&] { return next<int(int)>("close")(descriptor); });
}

ssize_t read(int descriptor, void* data, size_t bytes) {
  return read_from(descriptor, bytes,
                   [&](size_t most) { return next<ssize_t(int, void*, size_t)>("read")(descriptor, data, most); });
}

ssize_t pread(int descriptor, void* data, size_t bytes, off_t offset) {
  return read_from(descriptor, bytes, [&](size_t most) {
    return next<ssize_t(int, void*, size_t, off_t)>("pread")(descriptor, data, most, offset);
  });
}

ssize_t pread64(int descriptor, void* data, size_t bytes, off64_t offset) {
  return pread(descriptor, data, bytes, offset);
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  return write_to(descriptor, data, bytes, -1, [&](size_t most) {
    return next<ssize_t(int, const void*, size_t)>("write")(descriptor, data, most);
  });
}

ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  return write_to(descriptor, data, bytes, offset, [&](size_t most) {
    return next<ssize_t(int, const void*, size_t, off_t)>("pwrite")(descriptor, data, most, offset);
  });
}

ssize_t pwrite64(int descriptor, const void* data, size_t bytes, off64_t offset) {
  return pwrite(descriptor, data, bytes, offset);
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  if (shim().files.of(descriptor).empty())
    return next<ssize_t(int, const iovec*, int)>("writev")(descriptor, parts, count);
  // A shorter write is allowed, and whoever calls goes on with the rest.
  for (int i = 0; i < count; ++i) {
    if (parts[i].iov_len > 0) return write(descriptor, parts[i].iov_base, parts[i].iov_len);
  }
  return 0;
}

int fsync(int descriptor) {
  return on_open_file("sync", descriptor, true, [&] { return next<int(int)>("fsync")(descriptor); });
}

int fdatasync(int descriptor) {
  return on_open_file("sync", descriptor, true, [&] { return next<int(int)>("fdatasync")(descriptor); });
}

int ftruncate(int descriptor, off_t length) __THROW {
  return cut("truncate", shim().files.of(descriptor), length,
             [&] { return next<int(int, off_t)>("ftruncate")(descriptor, length); });
}

int ftruncate64(int descriptor, off64_t length) __THROW { return ftruncate(descriptor, length); }

int truncate(const char* path, off_t length) __THROW {
  return cut("truncate", shim().files.below(path), length,
             [&] { return next<int(const char*, off_t)>("truncate")(path, length); });
}

}  // extern "C"
