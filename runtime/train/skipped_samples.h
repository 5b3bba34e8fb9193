// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

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
  /// Of the next step.
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

/// Throws StorageError for more skipped samples than errors.max_skipped. `where`: "epoch 2".
void require_few(std::uint64_t skipped, const data::SampleErrors& errors, const std::string& where);

}  // namespace lockstep::train
