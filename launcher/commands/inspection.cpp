// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/inspection.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/base/program_name.h"
#include "runtime/checkpoint/bundle.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/store.h"
#include "runtime/job/job.h"
#include "runtime/job/model_options.h"
#include "runtime/step/compute_environment.h"
#include "runtime/step/saved_preparation.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

Json describe_tensor(const std::string& name, const Tensor& tensor) {
  double sum = 0.0;
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  std::int64_t not_finite = 0;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    const double value = tensor.item(i);
    sum += value;
    least = std::min(least, value);
    most = std::max(most, value);
    if (!std::isfinite(value)) ++not_finite;
  }
  const auto extents = tensor.shape().extents();
  Json result{{"name", name},
              {"dtype", name_of(tensor.dtype())},
              {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())}};
  if (tensor.numel() == 0) return result;
  result.update({{"mean", sum / static_cast<double>(tensor.numel())}, {"min", least}, {"max", most}});
  if (not_finite > 0) result["not_finite"] = not_finite;
  return result;
}

Json inspect_safetensors(const fs::path& path) {
  Json result{{"kind", "safetensors"}, {"path", path.string()}};
  const checkpoint::SafetensorsFile file(path.string());
  if (!file.metadata().empty()) result["metadata"] = file.metadata();
  result["tensors"] = Json::array();
  for (const checkpoint::TensorEntry& entry : file.tensors()) {
    result["tensors"].push_back(describe_tensor(entry.name, file.read(entry)));
  }
  return result;
}

/// The value of the one part of a kind, or those of several by their names. `value_of` takes a part's number.
template <class Named, class ValueOf>
Json by_name(const Named& parts, const ValueOf& value_of) {
  if (parts.size() == 1 && parts[0].name().empty()) return value_of(0);
  Json values = Json::object();
  for (int i = 0; i < parts.size(); ++i) values[parts[i].name()] = value_of(i);
  return values;
}

Json describe_scaler(const checkpoint::ScalerState& scaler) {
  return {{"enabled", scaler.enabled()},
          {"scale", scaler.scale()},
          {"growth_tracker", scaler.growth_tracker()},
          {"growth_interval", scaler.growth_interval()},
          {"consecutive_skips", scaler.consecutive_skips()},
          {"skipped_steps", scaler.skipped_steps()}};
}

Json describe_state(const checkpoint::TrainingState& state) {
  const auto& models = state.bucket_plan();
  const auto& optimizers = state.schedule();
  return {
      {"lockstep_version", state.lockstep_version()},
      {"job", state.job().name()},
      {"job_hash", state.job_hash()},
      {"step", state.step()},
      {"applied_steps", by_name(optimizers, [&](int i) { return optimizers[i].applied_steps(); })},
      {"epoch", state.epoch()},
      {"sampler",
       {{"seed", state.sampler().seed()}, {"epoch", state.sampler().epoch()}, {"cursor", state.sampler().cursor()}}},
      {"world_size", state.world_size()},
      {"optimizer", by_name(optimizers, [&](int i) { return i < state.optimizer_size() ? state.optimizer(i) : ""; })},
      {"scaler", by_name(state.scaler(), [&](int i) { return describe_scaler(state.scaler(i)); })},
      {"weights_digest",
       by_name(models, [&](int i) { return i < state.weights_digest_size() ? state.weights_digest(i) : ""; })},
      {"environment", Json::parse(step::to_json(state.environment()))}};
}

Json inspect_checkpoint(const fs::path& path) {
  Json result{{"kind", "checkpoint"}, {"path", path.string()}};
  try {
    const checkpoint::Checkpoint checkpoint = checkpoint::read_checkpoint(path.string());
    result.update(describe_state(checkpoint.state));
    result["tensors"] = Json::array();
    for (const auto& [name, tensor] : checkpoint.tensors) result["tensors"].push_back(describe_tensor(name, tensor));
  } catch (const StorageError& error) {
    result["damage"] = error.what();
  }
  return result;
}

Json inspect_bundle(const fs::path& path) {
  Json result{{"kind", "bundle"}, {"path", path.string()}};
  try {
    const checkpoint::Checkpoint bundle = checkpoint::read_checkpoint(path.string());
    const auto preparation = step::saved_preparation(bundle.state, path.string());
    result.update({{"lockstep_version", bundle.state.lockstep_version()},
                   {"job", bundle.state.job().name()},
                   {"model", job::model_kind(bundle.state.job().model())},
                   {"step", bundle.state.step()}});
    if (preparation) {
      result["input"] = preparation->trained.inputs_text();
      result["classes"] = preparation->trained.classes;
      result["class_names"] = preparation->class_names;
    }
    result["tensors"] = Json::array();
    for (const auto& [name, tensor] : bundle.tensors) result["tensors"].push_back(describe_tensor(name, tensor));
  } catch (const StorageError& error) {
    result["damage"] = error.what();
  }
  return result;
}

Json inspect_run(const fs::path& path, const fs::path& checkpoints) {
  Json result{{"kind", "run"}, {"path", path.string()}, {"checkpoints", Json::array()}};
  for (const checkpoint::ScanEntry& entry : checkpoint::Store(checkpoints.string()).scan()) {
    Json line{{"step", entry.step}, {"path", entry.path}, {"valid", entry.damage.empty()}};
    if (!entry.damage.empty()) line["damage"] = entry.damage;
    result["checkpoints"].push_back(line);
  }
  return result;
}

void refuse_job(const fs::path& path) {
  if (path.extension() == ".safetensors") return;
  if (path.extension() != ".pbtxt" && !job::check(path).job.has_model()) return;
  throw UsageError(path.string() + " is a job, not something that a run has written",
                   program_name() + " validate " + path.string() + " says what it would train; " + program_name() +
                       " inspect --autocast " + path.string() + " says in which dtypes.");
}

bool is_checkpoint(const fs::path& path) {
  return std::ranges::any_of(std::array{"manifest.json", "state.pb", "tensors.safetensors"},
                             [&](const char* name) { return fs::exists(path / name); });
}

}  // namespace

Json inspect(const fs::path& path) {
  if (!fs::exists(path))
    throw StorageError("there is no " + path.string(), "Name a checkpoint, a run, a bundle or a *.safetensors file.");
  if (!fs::is_directory(path)) {
    if (checkpoint::is_bundle(path)) return inspect_bundle(path);
    refuse_job(path);
    return inspect_safetensors(path);
  }
  if (is_checkpoint(path)) return inspect_checkpoint(path);
  if (fs::is_directory(path / "checkpoints")) return inspect_run(path, path / "checkpoints");
  Json result = inspect_run(path, path);
  if (result["checkpoints"].empty() && !fs::exists(path / "job.pbtxt")) {
    throw StorageError(path.string() + " is neither a checkpoint nor a run's directory",
                       "Name a checkpoint, a run, a bundle or a *.safetensors file.");
  }
  return result;
}

bool is_damaged(const Json& inspection) {
  if (inspection.contains("damage")) return true;
  return inspection.contains("checkpoints") &&
         std::ranges::any_of(inspection["checkpoints"], [](const Json& entry) { return entry.contains("damage"); });
}

}  // namespace lockstep::launcher
