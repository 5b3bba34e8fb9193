// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/initial_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "model_zoo/exchange.h"
#include "model_zoo/wrapper_prefixes.h"
#include "runtime/base/error.h"
#include "runtime/base/name_pattern.h"
#include "runtime/checkpoint/bundle.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/job/model_options.h"
#include "runtime/nn/arena.h"
#include "runtime/nn/state_dict.h"
#include "runtime/step/replicated.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/step/weight_file.h"
#include "runtime/tensor/cpu_allocator.h"
#include "runtime/train/job_step.h"
#include "runtime/train/network.h"
#include "runtime/train/pretrained_config.h"
#include "runtime/train/task.h"
#include "runtime/train/training_state.h"
#include "runtime/train/weight_misfit.h"

namespace lockstep::train {

namespace fs = std::filesystem;

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

/// The file of weights in a folder as transformers' save_pretrained() writes it; empty where the folder holds none.
fs::path published_file(const fs::path& folder) {
  for (const char* const name : {"model.safetensors.index.json", "model.safetensors", "pytorch_model.bin"}) {
    if (fs::is_regular_file(folder / name)) return folder / name;
  }
  if (fs::is_regular_file(folder / "config.json")) {
    throw FieldError("init_from.path",
                     folder.string() + " holds a config.json, and no weights that can be read beside it",
                     "They are model.safetensors, model.safetensors.index.json or pytorch_model.bin: in Python, "
                     "model.save_pretrained(FOLDER) writes them.");
  }
  return {};
}

/// Weights by the model's own names.
struct Found {
  nn::StateDict tensors;
  std::vector<std::string> remarks = {};  ///< what was done to have them so
};

Found weights_in(const fs::path& file, const job::Job& job, nn::Module& model, bool whole) {
  const model_zoo::ModelOptions options = job::model_options(job.model());
  Found found;
  for (const std::string& said : require_config_of(file, options, whole)) {
    found.remarks.push_back("  config.json says for training: " + said);
  }
  const model_zoo::Unwrapped theirs = model_zoo::without_wrappers(options, model, step::read_weights(file));
  if (!theirs.removed.empty()) {
    found.remarks.push_back(
        fmt::format("  names in the file have a wrapper's \"{}\", which is left out", theirs.removed));
  }
  found.tensors = model_zoo::from_pytorch(options, model, theirs.tensors);
  return found;
}

Found weights_at(const fs::path& path, const job::Job& job, nn::Module& model, bool whole) {
  if (checkpoint::is_bundle(path)) return {.tensors = by_own_names(find_checkpoint(path))};
  if (!fs::is_directory(path)) return weights_in(path, job, model, whole);
  const fs::path file = published_file(path);
  if (!file.empty()) return weights_in(file, job, model, whole);
  return {.tensors = by_own_names(find_checkpoint(path))};
}

/// What an init_from takes of a model.
struct Chosen {
  nn::StateDict into;               ///< the model's tensors
  nn::StateDict from;               ///< the weights for them
  std::vector<std::string> kept;    ///< the model's that keep their initial values
  std::vector<std::string> unused;  ///< of the weights
};

Chosen chosen_of(const Choice& choice, const nn::StateDict& all, nn::StateDict found) {
  if (choice.is_all()) return {.into = all, .from = std::move(found), .kept = {}, .unused = {}};
  Chosen chosen;
  for (const auto& [name, tensor] : all) {
    choice.takes(name) ? void(chosen.into.emplace(name, tensor)) : chosen.kept.push_back(name);
  }
  for (const auto& [name, tensor] : found) {
    chosen.into.contains(name) ? void(chosen.from.emplace(name, tensor)) : chosen.unused.push_back(name);
  }
  return chosen;
}

void require_fit(const Chosen& chosen, const nn::StateDict& all, const std::string& path) {
  const WeightMisfit misfit(chosen.into, chosen.from, all);
  if (misfit.empty()) return;
  const std::string choice = misfit.choice();
  throw FieldError("init_from.path",
                   fmt::format("{} does not fit the job's model, and nothing was loaded:\n{}", path, misfit.table()),
                   choice.empty()
                       ? "Give the job's model the sizes of the file's."
                       : fmt::format("Give the job's model the sizes of the file's, or leave out what does not "
                                     "fit: init_from {{ path: \"{}\" {} }}",
                                     path, choice));
}

std::vector<std::string> load(const job::Job& job, nn::Module& model) {
  const std::string& path = job.init_from().path();
  const Choice choice(job.init_from());
  Found found = weights_at(path, job, model, choice.is_all());
  const nn::StateDict all = nn::state_dict(model);
  choice.require_used(all);
  const Chosen chosen = chosen_of(choice, all, std::move(found.tensors));
  if (chosen.into.empty()) {
    throw FieldError("init_from", "its patterns choose none of the model's tensors",
                     "They are " + list_of(chosen.kept) + ".");
  }
  require_fit(chosen, all, path);
  nn::load_state(chosen.into, chosen.from, true, "what init_from chooses of the model");
  if (model.arena()) model.arena()->refresh_copies();
  std::vector<std::string> remarks{
      choice.is_all() ? fmt::format("weights from {}: all {} tensors", path, all.size())
                      : fmt::format("weights from {}: {} of {} tensors", path, chosen.into.size(), all.size())};
  remarks.insert(remarks.end(), found.remarks.begin(), found.remarks.end());
  if (!chosen.kept.empty()) remarks.push_back("  initial values stay in " + list_of(chosen.kept));
  if (!chosen.unused.empty()) remarks.push_back("  not used: " + list_of(chosen.unused));
  return remarks;
}

}  // namespace

std::vector<std::string> load_initial_weights(const job::Job& job, nn::Module& model) {
  std::vector<std::string> remarks = load(job, model);
  // A step has no use for the memory that the file's tensors took.
  CpuAllocator::instance().release_cached();
  return remarks;
}

std::string choice_that_fits(const job::Job& job, const data::Description& data) {
  const Task task(job.train(), data);
  const auto model = model_zoo::outline(job::model_options(job.model()), task.model_input());
  const Found found = weights_at(job.init_from().path(), job, *model, false);
  const nn::StateDict all = nn::state_dict(*model);
  const WeightMisfit misfit(all, found.tensors, all);
  const std::string choice = misfit.choice();
  CpuAllocator::instance().release_cached();
  if (choice.empty() && !misfit.empty()) require_fit({.into = all, .from = found.tensors}, all, job.init_from().path());
  return choice;
}

void take_initial_weights(const job::Job& job, Network& network, JobStep& step, comm::Communicator& communicator) {
  if (!job.has_init_from()) return;
  step::on_rank_zero(communicator, [&] { load_initial_weights(job, network.model()); });
  step.ddp().broadcast_weights();
}

}  // namespace lockstep::train
