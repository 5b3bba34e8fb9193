// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/skipped_samples.h"

#include <fmt/format.h>

#include "runtime/tensor/error.h"

namespace lockstep::train {

void SkippedSamples::restore(const step::Progress& progress) {
  epoch_ = progress.sampler.epoch;
  of_epoch_ = progress.epoch_skipped_samples;
  of_run_ = progress.skipped_samples;
}

void SkippedSamples::add(std::uint64_t epoch, std::uint64_t skipped) {
  if (epoch != epoch_) of_epoch_ = 0;
  epoch_ = epoch;
  of_epoch_ += skipped;
  of_run_ += skipped;
}

void SkippedSamples::save(step::Progress& progress) const {
  progress.skipped_samples = of_run_;
  progress.epoch_skipped_samples = progress.sampler.epoch == epoch_ ? of_epoch_ : 0;
}

void require_few(std::uint64_t skipped, const data::SampleErrors& errors, const std::string& where) {
  if (errors.on_error == data::OnError::kFail || skipped <= static_cast<std::uint64_t>(errors.max_skipped)) return;
  throw StorageError(fmt::format("more than {} samples of {} could not be read (data.max_skipped), over all ranks",
                                 errors.max_skipped, where),
                     "The ranks' logs name each: mend or remove the files, or raise data.max_skipped.");
}

}  // namespace lockstep::train
