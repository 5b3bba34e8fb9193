// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/saved_state.h"

#include <fmt/format.h>
#include <lockstep/version.h>

#include "comm/ddp/bucket_plan.h"
#include "comm/ddp/digest.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/step/state_fields.h"

namespace lockstep::step {

namespace {

checkpoint::ScalerState to_message(const amp::GradScalerState& state) {
  checkpoint::ScalerState message;
  message.set_enabled(!state.empty());
  message.set_scale(state.scale);
  message.set_growth_factor(state.growth_factor);
  message.set_backoff_factor(state.backoff_factor);
  message.set_growth_interval(state.growth_interval);
  message.set_growth_tracker(state.growth_tracker);
  message.set_consecutive_skips(state.consecutive_skips);
  message.set_skipped_steps(state.skipped_steps);
  return message;
}

job::Precision precision_of(DType dtype) {
  if (dtype == DType::kFloat16) return job::FP16;
  return dtype == DType::kBFloat16 ? job::BF16 : job::FP32;
}

checkpoint::BucketPlan to_message(const comm::BucketPlan& plan) {
  checkpoint::BucketPlan message;
  for (const comm::Bucket& bucket : plan.buckets) {
    checkpoint::BucketPlan::Bucket& entry = *message.add_bucket();
    entry.set_begin(static_cast<std::uint64_t>(bucket.begin));
    entry.set_end(static_cast<std::uint64_t>(bucket.end));
  }
  for (const std::string& parameter : plan.parameters) message.add_parameter(parameter);
  message.set_wire_dtype(precision_of(plan.wire_dtype));
  return message;
}

/// "sgd", or "critic: sgd" of a part with a name.
std::string titled(const std::string& name, const std::string& kind) {
  return name.empty() ? kind : name + ": " + kind;
}

/// "optimizers a: sgd, b: adam", or "no optimizer".
std::string listed(const std::string& kind, const std::vector<std::string>& titles) {
  if (titles.empty()) return "no " + kind;
  return fmt::format("{}{} {}", kind, titles.size() > 1 ? "s" : "", fmt::join(titles, ", "));
}

}  // namespace

checkpoint::TrainingState describe(const Progress& progress, const LoopParts& parts) {
  checkpoint::TrainingState state;
  state.set_format(kStateFormat);
  state.set_lockstep_version(kVersion);
  state.set_step(progress.step);
  state.set_epoch(progress.sampler.epoch);
  state.mutable_sampler()->set_epoch(progress.sampler.epoch);
  state.set_skipped_samples(progress.skipped_samples);
  state.set_epoch_skipped_samples(progress.epoch_skipped_samples);
  state.mutable_sampler()->set_cursor(static_cast<std::uint64_t>(progress.sampler.cursor));
  if (progress.sampler.seed) state.mutable_sampler()->set_seed(*progress.sampler.seed);
  for (const auto& [name, scaler] : parts.scalers) {
    checkpoint::ScalerState& entry = *state.add_scaler();
    entry = to_message(scaler.state_dict());
    entry.set_name(name);
  }
  for (const auto& [name, optimizer] : parts.optimizers) {
    state.add_optimizer(optimizer.name());
    checkpoint::ScheduleState& entry = *state.add_schedule();
    entry.set_name(name);
    entry.set_applied_steps(static_cast<std::uint64_t>(optimizer.applied_steps()));
    entry.set_last_learning_rate(static_cast<float>(optimizer.learning_rate()));
  }
  for (const auto& [name, ddp] : parts.models) {
    const nn::Arena& arena = *ddp.model().arena();
    checkpoint::BucketPlan& entry = *state.add_bucket_plan();
    entry = to_message(comm::describe_plan(ddp.reducer().buckets(), arena));
    entry.set_name(name);
    state.add_weights_digest(comm::weights_digest(arena));
  }
  save_digests(parts.data, state);
  state.set_world_size(static_cast<std::uint32_t>(parts.models.front().object.communicator().size()));
  return state;
}

void save_digests(const std::vector<data::DataDigest>& digests, checkpoint::TrainingState& state) {
  for (const data::DataDigest& digest : digests) {
    checkpoint::DataDigest& saved = *state.add_data_digest();
    saved.set_format(data::kDigestFormat);
    saved.set_data(digest.data);
    saved.set_form(digest.form);
    saved.set_labels(digest.labels);
    saved.set_content(digest.content);
  }
}

std::vector<data::DataDigest> saved_digests(const checkpoint::TrainingState& saved) {
  std::vector<data::DataDigest> digests;
  for (const checkpoint::DataDigest& digest : saved.data_digest()) {
    if (digest.format() != data::kDigestFormat) continue;
    digests.push_back({digest.data(), digest.form(), digest.labels(), digest.content()});
  }
  return digests;
}

Progress progress_of(const checkpoint::TrainingState& saved) {
  const checkpoint::SamplerState& sampler = saved.sampler();
  Progress progress{saved.step(), {sampler.epoch(), static_cast<std::int64_t>(sampler.cursor())}};
  if (sampler.has_seed()) progress.sampler.seed = sampler.seed();
  progress.skipped_samples = saved.skipped_samples();
  progress.epoch_skipped_samples = saved.epoch_skipped_samples();
  return progress;
}

amp::GradScalerState state_of(const checkpoint::ScalerState& saved) {
  if (!saved.enabled()) return {};
  return {.scale = saved.scale(),
          .growth_factor = saved.growth_factor(),
          .backoff_factor = saved.backoff_factor(),
          .growth_interval = saved.growth_interval(),
          .growth_tracker = saved.growth_tracker(),
          .consecutive_skips = saved.consecutive_skips(),
          .skipped_steps = saved.skipped_steps()};
}

void require_same_parts(const LoopParts& parts, const checkpoint::Checkpoint& saved) {
  const checkpoint::TrainingState& state = saved.state;
  std::vector<std::string> before, now;
  for (int i = 0; i < state.optimizer_size(); ++i) {
    before.push_back(titled(i < state.schedule_size() ? state.schedule(i).name() : "", state.optimizer(i)));
  }
  for (const auto& [name, optimizer] : parts.optimizers) now.push_back(titled(name, optimizer.name()));
  if (before != now) {
    throw UsageError(fmt::format("{} was saved with {}, this loop has {}", saved.path, listed("optimizer", before),
                                 listed("optimizer", now)),
                     "Resume with the same optimizers, or from another directory.");
  }
  before.clear(), now.clear();
  for (const checkpoint::ScalerState& scaler : state.scaler()) before.push_back(titled(scaler.name(), "GradScaler"));
  for (const auto& [name, scaler] : parts.scalers) now.push_back(titled(name, "GradScaler"));
  if (before != now) {
    throw UsageError(fmt::format("{} was saved with {}, this loop has {}", saved.path, listed("scaler", before),
                                 listed("scaler", now)),
                     "Resume with the same scalers, or from another directory.");
  }
  if (has_mean(saved) != !parts.means.empty()) {
    throw UsageError(has_mean(saved) ? saved.path + " was saved with a mean of the weights, this loop has none"
                                     : saved.path + " was saved without a mean of the weights, this loop has one",
                     "Resume with train.ema as it was, or start a new run with init_from.");
  }
  for (std::size_t i = 0; i < parts.scalers.size(); ++i) {
    if (!parts.scalers[i].object.is_enabled() || state.scaler(static_cast<int>(i)).enabled()) continue;
    throw UsageError(fmt::format("{} was saved with a disabled {}, this one is enabled", saved.path, now[i]),
                     "Disable it, or begin in another directory.");
  }
}

}  // namespace lockstep::step
