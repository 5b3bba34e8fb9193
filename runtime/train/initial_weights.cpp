// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/initial_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <span>

#include "model_zoo/exchange.h"
#include "runtime/base/error.h"
#include "runtime/base/name_pattern.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/job/model_options.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/state_dict.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/step/weight_file.h"
#include "runtime/tensor/cpu_allocator.h"
#include "runtime/train/pretrained_config.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

namespace {

/// The most tensors that a message names.
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

/// The file of weights in a folder as Hugging Face's hub has it; empty where the folder holds none.
std::filesystem::path published_file(const std::filesystem::path& folder) {
  for (const char* const name : {"model.safetensors.index.json", "model.safetensors", "pytorch_model.bin"}) {
    if (std::filesystem::is_regular_file(folder / name)) return folder / name;
  }
  return {};
}

nn::StateDict weights_at(const std::filesystem::path& path, const job::Job& job, nn::Module& model) {
  if (std::filesystem::is_directory(path)) {
    const std::filesystem::path file = published_file(path);
    if (!file.empty()) {
      throw FieldError("init_from.path", path.string() + " is a folder and no checkpoint",
                       "Name its file: " + file.string() + ".");
    }
    return by_own_names(find_checkpoint(path));
  }
  const model_zoo::ModelOptions options = job::model_options(job.model());
  require_config_of(path, options);
  return model_zoo::from_pytorch(options, model, step::read_weights(path));
}

/// Loads a state; what does not fit is the job's to leave out.
void fit(const std::function<void()>& load_state) {
  try {
    load_state();
  } catch (const UsageError& error) {
    throw FieldError(
        "init_from.path", error.what(),
        "Give the job's model the sizes of the file's, or leave out what does not fit, as init_from { path: "
        "... except: \"^classifier\" } does with a classifier.");
  }
}

std::vector<std::string> load(const job::Job& job, nn::Module& model) {
  const std::filesystem::path path = job.init_from().path();
  const nn::StateDict found = weights_at(path, job, model);
  const nn::StateDict all = nn::state_dict(model);
  const Choice choice(job.init_from());
  choice.require_used(all);
  if (choice.is_all()) {
    fit([&] { nn::load_state_dict(model, found); });
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
  fit([&] { nn::load_state(into, chosen, true, "what init_from chooses of the model"); });
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
  // A step has no use for the memory that the file's tensors took.
  CpuAllocator::instance().release_cached();
  return remarks;
}

}  // namespace lockstep::train
