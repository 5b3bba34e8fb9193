// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/step_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/byte_size.h"
#include "runtime/train/step_bound.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

Json to_json(const train::Spread& spread) {
  return {{"mean", spread.mean}, {"p10", spread.p10}, {"p50", spread.p50}, {"p90", spread.p90}};
}

Json parts_of(const train::StepProfile& profile) {
  Json parts;
  for (std::size_t p = 0; p < step::kStepParts; ++p) {
    Json& part = parts[std::string(step::name_of(static_cast<step::StepPart>(p)))];
    part = to_json(profile.parts[p]);
    part["share"] = profile.share(static_cast<step::StepPart>(p));
  }
  return parts;
}

Json passes_of(const train::StepProfile& profile) {
  Json passes = Json::array();
  for (const train::ProfiledPass& pass : profile.passes) {
    const auto or_null = [](bool known, const Json& value) { return known ? value : Json(); };
    passes.push_back({{"name", pass.name},
                      {"kind", pass.is_operation ? "operation" : "range"},
                      {"dtype", or_null(pass.is_operation, name_of(pass.dtype))},
                      {"calls", pass.calls},
                      {"ms", pass.ms},
                      {"share", pass.ms / profile.step.mean},
                      {"gflop_per_s", or_null(pass.gflops > 0, pass.gflops)},
                      {"gb_per_s", or_null(pass.gb_per_s > 0, pass.gb_per_s)},
                      {"of_floor", or_null(pass.of_floor.has_value(), pass.of_floor.value_or(0))},
                      {"implementation", or_null(!pass.implementation.empty(), pass.implementation)}});
  }
  return passes;
}

Json layers_of(const train::StepProfile& profile) {
  Json layers = Json::array();
  for (const train::ProfiledLayer& layer : profile.layers) {
    layers.push_back({{"path", layer.path}, {"forward_ms", layer.forward_ms}, {"backward_ms", layer.backward_ms}});
  }
  return layers;
}

Json floors_of(const train::StepProfile& profile) {
  const train::MachineFloors& floors = profile.floors;
  Json all{{"float32_gflop_per_s", floors.float32_gflops}, {"bfloat16_gflop_per_s", floors.bfloat16_gflops},
           {"float16_gflop_per_s", floors.float16_gflops}, {"memory_gb_per_s", floors.memory_gb_per_s},
           {"cache_gb_per_s", floors.cache_gb_per_s},      {"all_reduce", nullptr}};
  if (profile.transport) {
    all["all_reduce"] = {{"transport", profile.transport->transport},
                         {"alpha_us", profile.transport->alpha_us},
                         {"gb_per_s", profile.transport->gb_per_s}};
  }
  return all;
}

Json ranks_of(const train::StepProfile& profile) {
  Json ranks = Json::array();
  for (const train::RankProfile& rank : profile.ranks) {
    const bool known = rank.waited_ms.has_value();
    ranks.push_back({{"step_ms", rank.step_ms},
                     {"waited_ms", known ? Json(*rank.waited_ms) : Json()},
                     {"own_ms", known ? Json(rank.own_ms()) : Json()}});
  }
  return ranks;
}

Json memory_of(const train::StepProfile& profile) {
  const train::StepMemory& memory = profile.memory;
  Json all{{"peak_bytes", memory.peak}, {"operation", memory.operation}};
  for (std::size_t p = 0; p < step::kStepParts; ++p) {
    if (memory.parts[p] > 0) all["parts"][std::string(step::name_of(static_cast<step::StepPart>(p)))] = memory.parts[p];
  }
  for (const train::StepMemory::Share& share : memory.shares) {
    all["purposes"][std::string(name_of(share.purpose))] = share.bytes;
  }
  all["smaller"] = Json::array();
  for (const train::StepProfile::SmallerPeak& smaller : profile.smaller) {
    all["smaller"].push_back({{"setting", smaller.setting}, {"peak_bytes", smaller.bytes}});
  }
  return all;
}

std::string number_or_dash(const Json& value, const char* format) {
  return value.is_null() ? "-" : fmt::format(fmt::runtime(format), value.get<double>());
}

std::string head(const Json& report) {
  const Json& floors = report["floors"];
  std::string text = fmt::format(
      "{} on {}, {} thread{} a rank, {} samples a step; {} steps timed\n\nfloors        products {:.0f} GFLOP/s in "
      "float32, "
      "{:.0f} in bfloat16, {:.0f} in float16; copy {:.1f} GB/s, {:.1f} in cache\n",
      report["ranks"].size() == 1 ? "1 rank" : fmt::format("{} ranks", report["ranks"].size()),
      report["device"].get<std::string>(), report["threads"].get<int>(), report["threads"] == 1 ? "" : "s",
      report["samples"].get<std::int64_t>(), report["steps"].get<std::int64_t>(),
      floors["float32_gflop_per_s"].get<double>(), floors["bfloat16_gflop_per_s"].get<double>(),
      floors["float16_gflop_per_s"].get<double>(), floors["memory_gb_per_s"].get<double>(),
      floors["cache_gb_per_s"].get<double>());
  if (const Json& all_reduce = floors["all_reduce"]; !all_reduce.is_null()) {
    text += fmt::format("              all_reduce {:.1f} us and {:.1f} GB/s over {}\n",
                        all_reduce["alpha_us"].get<double>(), all_reduce["gb_per_s"].get<double>(),
                        all_reduce["transport"].get<std::string>());
  }
  text += fmt::format("measuring     {:+.1f} % of a step{}\n", 100 * report["clock_cost"].get<double>(),
                      report["device"] == "cpu" ? "" : ": the host waits for the GPU behind every operation");
  return text;
}

std::string spread_line(const std::string& name, const Json& spread, double share) {
  return fmt::format("{:<14}{:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f} {:>6.1f} %\n", name, spread["p10"].get<double>(),
                     spread["p50"].get<double>(), spread["p90"].get<double>(), spread["mean"].get<double>(),
                     100 * share);
}

std::string parts_text(const Json& report) {
  std::string text = fmt::format("\n{:<14}{:>9} {:>9} {:>9} {:>9} {:>8}\n", "ms", "p10", "p50", "p90", "mean", "share");
  for (const auto& [name, part] : report["parts"].items()) text += spread_line(name, part, part["share"]);
  return text + spread_line("step", report["step"], 1);
}

std::string passes_text(const Json& report, std::size_t most) {
  std::string text = fmt::format("\n{:<38}{:<10}{:>6} {:>9} {:>8} {:>9} {:>7} {:>7}  {}\n", "operation", "dtype",
                                 "calls", "ms", "share", "GFLOP/s", "GB/s", "floor", "by");
  std::size_t count = 0;
  for (const Json& pass : report["operations"]) {
    if (count++ == most) break;
    const bool is_operation = pass["kind"] == "operation";
    // Which library a GPU's operation calls is not noted.
    std::string by = report["device"] == "cpu" && is_operation ? "loops" : "";
    if (!pass["implementation"].is_null()) by = pass["implementation"].get<std::string>();
    std::string line = fmt::format(
        "{:<38}{:<10}{:>6.0f} {:>9.3f} {:>6.1f} % {:>9} {:>7} {:>7}  {}", pass["name"].get<std::string>(),
        pass["dtype"].is_null() ? "-" : pass["dtype"].get<std::string>(), pass["calls"].get<double>(),
        pass["ms"].get<double>(), 100 * pass["share"].get<double>(), number_or_dash(pass["gflop_per_s"], "{:.1f}"),
        number_or_dash(pass["gb_per_s"], "{:.1f}"),
        pass["of_floor"].is_null() ? "-" : fmt::format("{:.0f} %", 100 * pass["of_floor"].get<double>()), by);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string layers_text(const Json& report, std::size_t most) {
  std::string text = fmt::format("\n{:<38}{:>12} {:>12}\n", "layer", "forward ms", "backward ms");
  std::size_t count = 0;
  for (const Json& layer : report["layers"]) {
    if (count++ == most) break;
    const std::string path = layer["path"].get<std::string>();
    text += fmt::format("{:<38}{:>12.3f} {:>12.3f}\n", path.empty() ? "-" : path, layer["forward_ms"].get<double>(),
                        layer["backward_ms"].get<double>());
  }
  return text;
}

std::string ranks_text(const Json& report) {
  if (report["ranks"].size() == 1) return "";
  std::string text = fmt::format("\n{:<6}{:>9} {:>10} {:>9}\n", "rank", "step ms", "waited ms", "own ms");
  int number = 0;
  for (const Json& rank : report["ranks"]) {
    text += fmt::format("{:<6}{:>9.3f} {:>10} {:>9}{}\n", number, rank["step_ms"].get<double>(),
                        number_or_dash(rank["waited_ms"], "{:.3f}"), number_or_dash(rank["own_ms"], "{:.3f}"),
                        report["straggler"] == number ? "  slow" : "");
    ++number;
  }
  return text;
}

std::string step_memory_text(const Json& report) {
  const Json& memory = report["memory"];
  const auto size = [](const Json& bytes) { return byte_size(bytes.get<double>()); };
  const auto listed = [&size](const Json& sizes) {
    std::string text;
    for (const auto& [name, bytes] : sizes.items()) text += (text.empty() ? "" : ", ") + name + " " + size(bytes);
    return text;
  };
  std::string text =
      fmt::format("\nmemory        {} at most, in {}: {}\n              at most in {}\n", size(memory["peak_bytes"]),
                  memory["operation"].get<std::string>(), listed(memory["purposes"]), listed(memory["parts"]));
  for (const Json& smaller : memory["smaller"]) {
    text +=
        fmt::format("              {} with {}\n", size(smaller["peak_bytes"]), smaller["setting"].get<std::string>());
  }
  return text;
}

}  // namespace

Json to_json(const train::StepProfile& profile) {
  const train::StepBound bound = bound_of(profile);
  const auto straggler = profile.straggler();
  return {{"device", profile.device},
          {"threads", profile.threads},
          {"samples", profile.samples},
          {"steps", profile.steps},
          {"step", to_json(profile.step)},
          {"unclocked", to_json(profile.unclocked)},
          {"clock_cost", profile.step.p50 / profile.unclocked.p50 - 1},
          {"parts", parts_of(profile)},
          {"operations", passes_of(profile)},
          {"layers", layers_of(profile)},
          {"floors", floors_of(profile)},
          {"buckets", profile.buckets},
          {"wire_dtype", name_of(profile.wire_dtype)},
          {"ranks", ranks_of(profile)},
          {"memory", memory_of(profile)},
          {"straggler", straggler ? Json(*straggler) : Json()},
          {"bound", {{"name", bound.name}, {"sentence", bound.sentence}}}};
}

std::string step_text(const Json& report, std::size_t most) {
  return head(report) + parts_text(report) + passes_text(report, most) + layers_text(report, most) +
         ranks_text(report) + step_memory_text(report) + "\nbound         " +
         report["bound"]["sentence"].get<std::string>() + "\n";
}

}  // namespace lockstep::launcher
