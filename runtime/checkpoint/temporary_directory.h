// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace lockstep::checkpoint {

/// A directory for work in progress, named `<stem>.tmp-<host>.<pid>.<start time>.<serial>`, so that a later process can
/// tell whether its writer still runs. The destructor removes it with its files, unless it was renamed by then.
class TemporaryDirectory {
 public:
  /// Creates it inside `parent`.
  TemporaryDirectory(const std::string& parent, const std::string& stem);
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Whether `name`, inside `parent`, is a temporary directory of a writer that is known to be gone: a process of this
/// host that ended, or one of another host that has created nothing there for a day.
bool is_abandoned(const std::string& parent, const std::string& name);

/// Whether there is a directory, no link to one, and none inside it: what remove_checkpoint() can delete.
bool is_flat_directory(const std::string& path);

/// Deletes the directory: manifest.json first and for good, so that no half of a checkpoint passes for a whole one. Of
/// a link to a directory, the link alone: somebody keeps the checkpoint elsewhere.
void remove_checkpoint(const std::string& path);

}  // namespace lockstep::checkpoint
