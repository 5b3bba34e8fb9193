// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/initial_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "model_zoo/exchange.h"
#include "runtime/base/name_pattern.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/job/model_options.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/state_dict.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/tensor/cpu_allocator.h"
#include "runtime/tensor/error.h"
#include "runtime/train/training_state.h"
#include "runtime/train/weight_file.h"

namespace lockstep::train {

namespace {

/// Of a longer list the first ones are named.
constexpr std::size_t kNamedTensors = 8;

std::string list_of(const std::vector<std::string>& names) {
  std::string text = fmt::format("{}", fmt::join(std::span(names).first(std::min(names.size(), kNamedTensors)), ", "));
  if (names.size() > kNamedTensors) text += fmt::format(" and {} more", names.size() - kNamedTensors);
  return text;
}

/// A checkpoint's weights, their running mean where it has one, and running statistics by the model's own names.
nn::StateDict by_own_names(const checkpoint::Checkpoint& saved) {
  nn::StateDict weights;
  for (const auto& [name, tensor] : step::weights_of(saved, step::Weights::kMean)) {
    weights[name.substr(name.find('/') + 1)] = tensor;
  }
  return weights;
}

class Choice {
 public:
  explicit Choice(const job::InitFrom& from) {
    for (const std::string& pattern : from.match()) match_.emplace_back(pattern);
    for (const std::string& pattern : from.except()) except_.emplace_back(pattern);
  }
  /// Throws FieldError for a pattern that none of the model's tensors has.
  void require_used(const nn::StateDict& all) const {
    require_used(match_, "match", all);
    require_used(except_, "except", all);
  }
  bool is_all() const { return match_.empty() && except_.empty(); }
  bool takes(const std::string& name) const { return (match_.empty() || any(match_, name)) && !any(except_, name); }

 private:
  static void require_used(const std::vector<NamePattern>& patterns, const std::string& field,
                           const nn::StateDict& all) {
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const auto has = [&](const auto& entry) { return patterns[i].is_in(entry.first); };
      if (std::ranges::none_of(all, has)) {
        throw FieldError(fmt::format("init_from.{}[{}]", field, i), "is in none of the names of the model's tensors");
      }
    }
  }
  static bool any(const std::vector<NamePattern>& patterns, const std::string& name) {
    return std::ranges::any_of(patterns, [&name](const NamePattern& each) { return each.is_in(name); });
  }
  std::vector<NamePattern> match_;
  std::vector<NamePattern> except_;
};

std::vector<std::string> load(const job::Job& job, nn::Module& model) {
  const std::filesystem::path path = job.init_from().path();
  const nn::StateDict found = std::filesystem::is_directory(path)
                                  ? by_own_names(find_checkpoint(path))
                                  : model_zoo::from_pytorch(job::model_options(job.model()), model, read_weights(path));
  const nn::StateDict all = nn::state_dict(model);
  const Choice choice(job.init_from());
  choice.require_used(all);
  if (choice.is_all()) {
    nn::load_state_dict(model, found);
    return {fmt::format("weights from {}: all {} tensors", path.string(), all.size())};
  }
  nn::StateDict into;
  std::vector<std::string> kept, unused;
  for (const auto& [name, tensor] : all) choice.takes(name) ? void(into.emplace(name, tensor)) : kept.push_back(name);
  if (into.empty())
    throw FieldError("init_from", "its patterns choose none of the model's tensors", "They are " + list_of(kept) + ".");
  nn::StateDict chosen;
  for (const auto& [name, tensor] : found) {
    into.contains(name) ? void(chosen.emplace(name, tensor)) : unused.push_back(name);
  }
  nn::load_state(into, chosen, true, "what init_from chooses of the model");
  if (model.arena()) model.arena()->refresh_copies();
  std::vector<std::string> remarks{
      fmt::format("weights from {}: {} of {} tensors", path.string(), into.size(), all.size())};
  if (!kept.empty()) remarks.push_back("  initial values stay in " + list_of(kept));
  if (!unused.empty()) remarks.push_back("  not used: " + list_of(unused));
  return remarks;
}

}  // namespace

std::vector<std::string> load_initial_weights(const job::Job& job, nn::Module& model) {
  std::vector<std::string> remarks = load(job, model);
  // What the file's tensors took is of no use to a step.
  CpuAllocator::instance().release_cached();
  return remarks;
}

}  // namespace lockstep::train
