// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/commands/inspection.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string str(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string fact(const std::string& name, const std::string& value) { return padded(name, 14) + value + "\n"; }

std::string statistic(const Json& value) {
  char text[32];
  std::snprintf(text, sizeof text, "%12.5g", value.is_number() ? value.get<double>() : 0.0);
  return text;
}

std::string tensor_table(const Json& tensors) {
  std::size_t width = 4;
  for (const Json& tensor : tensors) width = std::max(width, str(tensor["name"]).size());
  std::string text = std::string("\n") + padded("tensor", width) +
                     "  dtype     shape                     mean         min         max\n";
  for (const Json& tensor : tensors) {
    text +=
        padded(str(tensor["name"]), width + 2) + padded(str(tensor["dtype"]), 10) + padded(tensor["shape"].dump(), 18);
    if (tensor.contains("mean"))
      text += statistic(tensor["mean"]) + statistic(tensor["min"]) + statistic(tensor["max"]);
    if (tensor.contains("not_finite")) text.append("  ").append(str(tensor["not_finite"])).append(" not finite");
    text += "\n";
  }
  return text;
}

std::string environment_lines(const Json& environment) {
  std::string text;
  for (const auto& [name, value] : environment.items()) {
    if (name != "lockstep") text += (text.empty() ? "" : ", ") + name + " " + str(value);
  }
  return text.empty() ? "" : fact("computed with", text);
}

/// A value, or those of several parts: "generator adam, critic sgd".
std::string of_parts(const Json& value) {
  if (!value.is_object()) return str(value);
  std::string text;
  for (const auto& [name, of_part] : value.items()) text += (text.empty() ? "" : ", ") + name + " " + str(of_part);
  return text.empty() ? "none" : text;
}

std::string scaler_line(const std::string& title, const Json& scaler) {
  return fact(title, str(scaler["scale"]) + ", " + str(scaler["growth_tracker"]) + " of " +
                         str(scaler["growth_interval"]) + " good steps to its growth, " + str(scaler["skipped_steps"]) +
                         " steps skipped (" + str(scaler["consecutive_skips"]) + " in a row now)");
}

std::string scaler_lines(const Json& scaler) {
  if (scaler.contains("scale")) return scaler_line("loss scale", scaler);
  std::string text;
  for (const auto& [name, of_part] : scaler.items()) text += scaler_line("scale of " + name, of_part);
  return text;
}

std::string state_lines(const Json& state) {
  return fact("job", str(state["job"]) + ", hash " + str(state["job_hash"])) +
         fact("step", str(state["step"]) + ", " + of_parts(state["applied_steps"]) + " of them applied") +
         fact("epoch", str(state["epoch"]) + ", " + str(state["sampler"]["cursor"]) + " samples into it") +
         fact("world size", str(state["world_size"])) + fact("optimizer", of_parts(state["optimizer"])) +
         scaler_lines(state["scaler"]) + fact("weights", of_parts(state["weights_digest"])) +
         fact("written by", "lockstep " + str(state["lockstep_version"])) + environment_lines(state["environment"]);
}

std::string bundle_lines(const Json& bundle) {
  std::string text = fact("job", str(bundle["job"]) + ", model " + str(bundle["model"])) +
                     fact("step", str(bundle["step"])) +
                     fact("written by", "lockstep " + str(bundle["lockstep_version"]));
  if (bundle.contains("input")) text += fact("input", str(bundle["input"]));
  if (bundle.contains("classes") && bundle["classes"] > 0) {
    const Json& names = bundle["class_names"];
    text += fact("classes", str(bundle["classes"]) + (names.empty() ? "" : ": " + names.dump()));
  }
  return text;
}

std::string checkpoint_list(const Json& checkpoints) {
  if (checkpoints.empty()) return "no checkpoints\n";
  std::string text;
  for (const Json& entry : checkpoints) {
    const std::string verdict = entry.contains("damage") ? "damaged: " + str(entry["damage"]) : "whole";
    text += fact("step " + str(entry["step"]), str(entry["path"]) + "  " + verdict);
  }
  return text;
}

}  // namespace

std::string inspection_text(const Json& inspection) {
  std::string text = fact(str(inspection["kind"]), str(inspection["path"]));
  if (inspection.contains("damage")) text += fact("damaged", str(inspection["damage"]));
  if (inspection.contains("world_size")) text += state_lines(inspection);
  if (inspection.contains("model")) text += bundle_lines(inspection);
  if (inspection.contains("metadata")) text += fact("metadata", inspection["metadata"].dump());
  if (inspection.contains("checkpoints")) text += checkpoint_list(inspection["checkpoints"]);
  if (inspection.contains("tensors")) text += tensor_table(inspection["tensors"]);
  return text;
}

}  // namespace lockstep::launcher
