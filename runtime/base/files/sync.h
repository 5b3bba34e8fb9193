// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cerrno>

namespace lockstep {

/// fsync(), of a file or of the directory that names it. Some file systems have none, network ones often none for
/// directories, and say so with EINVAL: what they hold is durable by their protocol, so that this is a success. On
/// any other failure the system drops what it could not write, and the caller has to write the content again. Only
/// after EINTR may the caller call this again as it is.
inline int sync_descriptor(int descriptor) {
  const int result = ::fsync(descriptor);
  return result < 0 && errno == EINVAL ? 0 : result;
}

}  // namespace lockstep
