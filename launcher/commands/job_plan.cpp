// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/job_plan.h"

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "launcher/supervisor/launch.h"
#include "runtime/base/byte_size.h"
#include "runtime/job/model_options.h"
#include "runtime/tensor/memory_room.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

Json extents(const Shape& shape) { return std::vector<std::int64_t>(shape.extents().begin(), shape.extents().end()); }

Json describe(const data::Description& data) {
  Json result{{"samples", data.samples}, {"sample_shape", extents(data.sample_shape)}};
  if (data.vocabulary > 0) result["vocabulary"] = data.vocabulary;
  for (const InputSpec& input : data.more_inputs) {
    Json more{{"sample_shape", extents(input.shape)}};
    if (input.vocabulary > 0) more["vocabulary"] = input.vocabulary;
    result["more_inputs"].push_back(std::move(more));
  }
  if (data.classes > 0) result["classes"] = data.classes;
  if (data.classes == 0 || data.target_shape.rank() > 0) result["target_shape"] = extents(data.target_shape);
  return result;
}

/// 25557032 as "25,557,032".
std::string grouped(const Json& value) {
  std::string text = value.dump();
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, 1, ',');
  return text;
}

std::string counted(const Json& value, const std::string& what) {
  return grouped(value) + " " + what + (value == 1 ? "" : "s");
}

std::string size(const Json& bytes) { return byte_size(bytes.get<double>()); }

std::string planned(const std::string& name, const std::string& value) {
  return "  " + name + std::string(14 - name.size(), ' ') + value + "\n";
}

std::string data_text(const Json& data) {
  const auto input_text = [](const Json& input) {
    return input.contains("vocabulary")
               ? counted(input["sample_shape"][0], "token") + " from a vocabulary of " + grouped(input["vocabulary"])
               : input["sample_shape"].dump();
  };
  std::string text = counted(data["samples"], "sample") + " of " + input_text(data);
  if (data.contains("more_inputs")) {
    for (const Json& input : data["more_inputs"]) text += " and " + input_text(input);
  }
  if (data.contains("classes")) text += " in " + grouped(data["classes"]) + " classes";
  return data.contains("target_shape") ? text + ", targets " + data["target_shape"].dump() : text;
}

std::string eval_text(const Json& plan) {
  if (plan["eval"].is_null()) return "none";
  const Json& every = plan["eval_every"];
  return counted(plan["eval"]["samples"], "sample") + (every == 0 ? "" : ", every " + counted(every, "step")) +
         (every == 0 ? ", at the end" : " and at the end");
}

std::string memory_text(const Json& memory) {
  std::string text;
  for (const auto& [name, bytes] : memory.items()) {
    if (bytes == 0) continue;
    std::string words = name;
    for (char& c : words) c = c == '_' ? ' ' : c;
    text += (text.empty() ? "" : ", ") + words + " " + size(bytes);
  }
  return text;
}

std::string steps_text(const Json& plan) {
  std::array<char, 32> epochs{};
  std::snprintf(epochs.data(), epochs.size(), "%.4g", plan["epochs"].get<double>());
  return grouped(plan["steps"]) + " of " + counted(plan["global_batch"], "sample") + ": " +
         counted(plan["steps_per_epoch"], "step") + " an epoch, " + epochs.data() +
         (plan["epochs"] == 1.0 ? " epoch" : " epochs");
}

std::string checkpoints_text(const Json& checkpoints) {
  const Json& every = checkpoints["every_steps"];
  const Json& keep = checkpoints["keep"];
  const std::string when = every == 0 ? "at the end" : "every " + counted(every, "step") + " and at the end";
  const bool all_stay = keep == 0 || keep >= checkpoints["count"];
  return grouped(checkpoints["count"]) + " of " + size(checkpoints["bytes"]) + ", " + when +
         (all_stay ? "" : "; the newest " + grouped(keep) + " stay") + "; in " +
         checkpoints["directory"].get<std::string>();
}

}  // namespace

train::Plan plan_of(const job::Checked& job, const LaunchOptions& launch, const std::filesystem::path& run_dir,
                    bool reads_weights) {
  train::PlanOptions options;
  options.reads_weights = reads_weights;
  options.ranks = rank_count(launch);
  options.ranks_here = launch.hosts.empty() ? options.ranks : 0;
  options.cores = train::cores_of_this_machine();
  options.run_dir = run_dir;
  // Looking for GPUs starts CUDA, which takes long; only what not every device can do needs to know.
  const bool asks = job.job.train().cuda_graph() == job::ON || job.job.amp().dtype() == job::BF16 ||
                    job.job.comm().wire_dtype() == job::BF16;
  if (asks) options.device = launch.device_of(0);
  train::Plan plan = train::plan(job.job, options, job.locations);
  // Of other hosts, and of a GPU beside which a smaller memory will do, nothing is known here.
  const std::optional<std::size_t> memory = launch.hosts.empty() ? whole_memory() : std::nullopt;
  train::Plan refused = plan;
  train::require_memory(refused, job.job, job.locations, memory, options.ranks_here);
  const bool is_too_large = refused.errors.size() > plan.errors.size();
  return is_too_large && launch.device_of(0) == kCpu ? refused : plan;
}

Json to_json(const train::Plan& plan, const job::Job& job, int ranks) {
  const double epochs = static_cast<double>(job.train().steps()) / static_cast<double>(plan.steps_per_epoch);
  return {{"ranks", ranks},
          {"model", job::model_kind(job.model())},
          {"parameters", plan.parameters},
          {"opt_level", job::OptLevel_Name(job.amp().opt_level())},
          {"dtype", job::Precision_Name(job.amp().dtype())},
          {"train", describe(plan.train)},
          {"eval", plan.eval ? describe(*plan.eval) : Json()},
          {"global_batch", job.data().global_batch()},
          {"steps", job.train().steps()},
          {"steps_per_epoch", plan.steps_per_epoch},
          {"epochs", epochs},
          {"eval_every", job.train().eval_every()},
          {"memory",
           {{"weights", plan.memory.weights},
            {"compute_copies", plan.memory.compute_copies},
            {"gradients", plan.memory.gradients},
            {"gradient_sums", plan.memory.gradient_sums},
            {"optimizer_state", plan.memory.optimizer_state}}},
          {"checkpoints",
           {{"count", plan.checkpoints.count},
            {"bytes", plan.checkpoints.bytes},
            {"every_steps", job.checkpoint().every_steps()},
            {"keep", job.checkpoint().keep()},
            {"directory", plan.checkpoints.directory.string()}}}};
}

std::string plan_text(const Json& plan) {
  const std::string precision = plan["opt_level"].get<std::string>() + " in " + plan["dtype"].get<std::string>();
  return planned("training", data_text(plan["train"])) + planned("evaluation", eval_text(plan)) +
         planned("model", plan["model"].get<std::string>() + ", " + counted(plan["parameters"], "parameter") + ", " +
                              precision) +
         planned("memory", memory_text(plan["memory"]) + (plan["ranks"] == 1 ? "" : " on each rank")) +
         planned("steps", steps_text(plan)) + planned("ranks", grouped(plan["ranks"])) +
         planned("checkpoints", checkpoints_text(plan["checkpoints"]));
}

Json to_json(const train::DryRun& measured) {
  return {{"peak", measured.peak},
          {"activations", measured.activations},
          {"gradients_of_activations", measured.activation_gradients},
          {"step_ms", measured.step_ms}};
}

std::string measured_text(const Json& measured) {
  std::array<char, 48> time{};
  std::snprintf(time.data(), time.size(), ", in a step of %.0f ms", measured["step_ms"].get<double>());
  return planned("measured", "peak " + size(measured["peak"]) + ", activations " + size(measured["activations"]) +
                                 ", gradients of activations " + size(measured["gradients_of_activations"]) +
                                 time.data());
}

}  // namespace lockstep::launcher
