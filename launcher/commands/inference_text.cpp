// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/commands/infer_command.h"

namespace lockstep::launcher {

namespace {

using Json = nlohmann::ordered_json;

void print_json(const train::InferResult& result, const std::string& out) {
  Json object{{"samples", result.samples},
              {"dtype", name_of(result.dtype)},
              {"weight_bytes", result.cost.weight_bytes},
              {"samples_per_s", result.cost.samples_per_s},
              {"not_finite", result.not_finite}};
  if (result.accuracy) object["accuracy"] = *result.accuracy;
  if (result.agreement) {
    const train::Agreement& agreement = *result.agreement;
    Json& float32 = object["float32"];
    if (agreement.equal_classes) float32["equal_classes"] = *agreement.equal_classes;
    float32["largest_difference"] = agreement.largest_difference;
    float32["weight_bytes"] = agreement.float32.weight_bytes;
    float32["samples_per_s"] = agreement.float32.samples_per_s;
  }
  if (result.of_mean) object["weights"] = "mean";
  if (!result.failures.empty()) object["unread"] = result.failures.size();
  object["checkpoint"] = result.checkpoint;
  object["out"] = out.empty() ? Json() : Json(out);
  std::printf("%s\n", object.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
}

void print_cost(const char* name, const train::ModelCost& cost) {
  std::printf("%-11s %lld bytes of weights, %.0f samples/s\n", name, static_cast<long long>(cost.weight_bytes),
              cost.samples_per_s);
}

void print_text(const train::InferResult& result, const std::string& note, const std::string& out) {
  std::printf("checkpoint  %s%s\nsamples     %lld\n", result.checkpoint.c_str(), note.c_str(),
              static_cast<long long>(result.samples));
  if (result.of_mean) std::printf("weights     their running mean\n");
  if (result.accuracy) std::printf("accuracy    %.2f %%\n", 100.0 * *result.accuracy);
  if (!result.failures.empty()) std::printf("unread      %zu of them\n", result.failures.size());
  if (result.not_finite > 0) {
    std::printf("not finite  %lld of them\n", static_cast<long long>(result.not_finite));
  }
  print_cost(std::string(name_of(result.dtype)).c_str(), result.cost);
  if (result.agreement) {
    const train::Agreement& agreement = *result.agreement;
    print_cost("float32", agreement.float32);
    std::printf("agreement   ");
    if (agreement.equal_classes) std::printf("%.2f %% equal classes, ", 100.0 * *agreement.equal_classes);
    std::printf("largest difference %.3g\n", agreement.largest_difference);
  }
  if (!out.empty()) std::printf("written     %s\n", out.c_str());
  if (out.empty() && !result.agreement) std::printf("written     nothing: --out FILE takes the predictions\n");
}

}  // namespace

void print_result(const InferCommand& command, const train::InferResult& result, const std::string& note) {
  command.json ? print_json(result, command.out) : print_text(result, note, command.out);
}

}  // namespace lockstep::launcher
