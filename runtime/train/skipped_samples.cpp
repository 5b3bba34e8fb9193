// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/skipped_samples.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"

namespace lockstep::train {

using Json = nlohmann::ordered_json;

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

void SkippedNames::tell(std::vector<data::UnreadSample> mine, comm::Communicator& communicator) {
  // The threads that read a batch end in any order.
  std::ranges::sort(mine, {}, &data::UnreadSample::index);
  Json unread = Json::array();
  for (const auto& [index, error] : mine) {
    if (!told_.contains(index)) unread.push_back({index, error});
  }
  const std::string text = unread.dump(-1, ' ', false, Json::error_handler_t::replace);
  for (const std::string& of_rank : communicator.all_gather_text(text)) {
    for (const Json& sample : parse_ordered_json(of_rank)) {
      const auto index = sample.at(0).get<std::int64_t>();
      const bool is_new = told_.insert(index).second;
      if (is_new && communicator.rank() == 0) {
        spdlog::warn("sample {} is skipped: {}", index, sample.at(1).get<std::string>());
      }
    }
  }
}

void require_few(std::uint64_t skipped, const data::SampleErrors& errors, const std::string& where) {
  if (errors.on_error == data::OnError::kFail || skipped <= static_cast<std::uint64_t>(errors.max_skipped)) return;
  throw StorageError(fmt::format("more than {} samples of {} could not be read (data.max_skipped), over all ranks",
                                 errors.max_skipped, where),
                     "The log names each: mend or remove the files, or raise data.max_skipped.");
}

}  // namespace lockstep::train
