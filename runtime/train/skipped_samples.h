// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "comm/group/communicator.h"
#include "runtime/data/batch.h"
#include "runtime/data/sample_reader.h"
#include "runtime/step/progress.h"

namespace lockstep::train {

/// How many samples the steps of a run have skipped, over all ranks, as every rank counts them alike. An epoch draws
/// each sample once, so that its count is that of the samples that cannot be read; with mixup, which draws others
/// beside them, such a sample counts each time.
class SkippedSamples {
 public:
  /// Goes on from where a run has come to.
  void restore(const step::Progress& progress);
  /// Adds the next step's count.
  void add(std::uint64_t epoch, std::uint64_t skipped);
  /// Adds the counts to what a checkpoint holds.
  void save(step::Progress& progress) const;

  std::uint64_t of_run() const { return of_run_; }
  std::uint64_t of_epoch() const { return of_epoch_; }

 private:
  std::uint64_t epoch_ = 0;
  std::uint64_t of_epoch_ = 0;
  std::uint64_t of_run_ = 0;
};

/// Names unreadable samples in rank 0's log: each sample once, however often it was met and on whichever ranks.
class SkippedNames {
 public:
  /// Names the samples that this rank has met since the last call. A collective.
  void tell(std::vector<data::UnreadSample> mine, comm::Communicator& communicator);

 private:
  std::unordered_set<std::int64_t> told_;  ///< indices; the same on every rank
};

/// Throws StorageError for more skipped samples than errors.max_skipped. `where`: "epoch 2".
void require_few(std::uint64_t skipped, const data::SampleErrors& errors, const std::string& where);

}  // namespace lockstep::train
