// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/files/retry.h"
#include "runtime/checkpoint/checkpoint.h"

namespace lockstep::checkpoint {

/// A checkpoint as scan() finds it.
struct ScanEntry {
  std::uint64_t step = 0;
  std::string path;
  std::string damage;  ///< what is wrong; empty when it is whole
};

/// The checkpoints of one run: a directory of `step-<8 digits>/`, each whole or absent. Nothing is updated in place,
/// and nothing points to the latest: it is found by looking. One process saves and prunes; any number may read
/// meanwhile.
class Store {
 public:
  explicit Store(std::string directory, RetryPolicy retries = {});

  const std::string& directory() const { return directory_; }

  /// Saves under `state.step()` and returns the path once the checkpoint is durable. Where a whole one of that step is
  /// there, it stays and this one is dropped. A damaged one is deleted once this one is durable in its place; what is
  /// no checkpoint, or one that cannot be read here, is moved aside. Tensors are on the CPU. Throws FileError when the
  /// disk keeps refusing; what was saved before is intact then and the temporary files are gone.
  std::string save(const TrainingState& state, const std::map<std::string, Tensor>& tensors) const;

  /// The steps that there are checkpoints of, by their names alone, the newest first. Throws StorageError.
  std::vector<std::uint64_t> steps() const;

  /// Every checkpoint with all its checksums verified, newest first.
  std::vector<ScanEntry> scan() const;

  /// The newest whole checkpoint of a step below `limit`, verified; none when the directory holds none. The notices
  /// name newer ones that are damaged. Throws StorageError when there are checkpoints and all of them are damaged.
  std::optional<Checkpoint> latest(std::uint64_t limit = std::numeric_limits<std::uint64_t>::max()) const;

  /// latest() without the tensors, which are compared all the same, and of any step.
  std::optional<Checkpoint> latest_state() const;

  /// Reads one checkpoint, wherever it lies. Throws StorageError that says what is damaged.
  Checkpoint load(const std::string& path) const;

  /// Deletes the checkpoints older than the newest `keep` whole ones (0: none), remains of interrupted deletions, and
  /// temporary directories of dead writers. Never deletes the newest whole checkpoint or one that is newer. Throws
  /// StorageError once all else is done where something cannot be deleted.
  void prune(std::uint32_t keep) const;
  /// Deletes all but the whole checkpoint of this step, and what prune() deletes beside. Throws StorageError, with
  /// nothing deleted, where there is none.
  void keep_only(std::uint64_t step) const;
  /// Deletes temporary directories of dead writers, as far as they can be deleted.
  void remove_abandoned() const;

 private:
  struct Place {
    std::uint64_t step;
    std::string path;
  };

  std::vector<Place> places() const;
  using Read = Checkpoint (*)(const std::string& path);
  std::optional<Checkpoint> newest(std::uint64_t limit, Read read) const;
  /// None where all of a step below `limit` are damaged; then `damages` says how.
  std::optional<Checkpoint> newest_of(const std::vector<Place>& places, std::uint64_t limit, Read read,
                                      std::vector<std::string>& damages) const;
  struct Damage {
    std::string what;        ///< empty: the checkpoint is whole
    bool is_certain = true;  ///< its content is wrong; not: the disk or its format keeps this program from reading it
  };
  Damage damage_of(const Place& place, Manifest (*check)(const std::string&)) const;
  void commit(const std::string& prepared, const Place& target) const;
  std::vector<std::string> abandoned() const;

  std::string directory_;
  RetryPolicy retries_;
};

}  // namespace lockstep::checkpoint
