// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/autocast_inspection.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "amp/autocast/operation_trace.h"
#include "runtime/data/eval_batches.h"
#include "runtime/data/make_dataset.h"
#include "runtime/job/data_options.h"
#include "runtime/nn/layer_scope.h"
#include "runtime/train/network.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

/// Enough for batch norm's statistics.
constexpr std::int64_t kSamples = 2;

std::vector<amp::TracedOperation> forward_pass(const job::Job& job) {
  const data::DatasetPtr dataset = data::make_dataset(job::data_options(job.data()), data::Split::kTrain);
  train::Network network(job, data::describe(*dataset), kCpu);
  std::map<const nn::Module*, std::string> paths;
  network.model().for_each([&](const std::string& path, nn::Module& module) { paths.emplace(&module, path); });
  const data::Batch batch = data::EvalBatches(dataset, kSamples, 0, 1)[0];

  amp::OperationTrace trace([&paths] {
    const auto found = paths.find(nn::LayerScope::current());
    return found == paths.end() ? std::string() : found->second;
  });
  network.task().loss(network.forward(batch), batch, static_cast<double>(batch.input.size(0)));
  return trace.operations();
}

Json names_of(const std::vector<DType>& dtypes) {
  Json names = Json::array();
  for (const DType dtype : dtypes) names.push_back(name_of(dtype));
  return names;
}

Json operation_json(const amp::TracedOperation& operation) {
  Json casts = Json::array();
  for (const amp::TracedCast& cast : operation.casts) {
    casts.push_back({{"parameter", cast.parameter.empty() ? Json() : Json(cast.parameter)},
                     {"from", name_of(cast.from)},
                     {"to", name_of(cast.to)},
                     {"how", cast.how}});
  }
  return {{"layer", operation.layer},
          {"operation", operation.name},
          {"inputs", names_of(operation.inputs)},
          {"results", names_of(operation.results)},
          {"decided_by", operation.decided.empty() ? Json() : Json(operation.decided)},
          {"casts", std::move(casts)}};
}

/// ["float32", "float32", "float16"] as "2 float32, float16".
std::string dtypes_text(const Json& names) {
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < names.size(); begin = end) {
    while (end < names.size() && names[end] == names[begin]) ++end;
    if (!text.empty()) text += ", ";
    if (end - begin > 1) text += std::to_string(end - begin) + " ";
    text += names[begin].get<std::string>();
  }
  return text;
}

/// "weight to float16 (compute copy), input to float16 (cast)"
std::string casts_text(const Json& casts) {
  std::string text;
  for (const Json& cast : casts) {
    std::string what = "input";
    if (cast["parameter"].is_string()) {
      what = cast["parameter"].get<std::string>();
      what = what.substr(what.rfind('.') + 1);
    }
    if (!text.empty()) text += ", ";
    text += what + " to " + cast["to"].get<std::string>() + " (" + cast["how"].get<std::string>() + ")";
  }
  return text;
}

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

}  // namespace

Json inspect_autocast(const job::Job& job) {
  Json operations = Json::array();
  for (const amp::TracedOperation& operation : forward_pass(job)) operations.push_back(operation_json(operation));
  return {{"kind", "autocast"},
          {"job", job.name()},
          {"opt_level", job::OptLevel_Name(job.amp().opt_level())},
          {"dtype", job::Precision_Name(job.amp().dtype())},
          {"operations", std::move(operations)}};
}

std::string autocast_text(const Json& inspection) {
  using Row = std::array<std::string, 6>;
  std::vector<Row> rows{{"layer", "operation", "in", "out", "decided by", "casts"}};
  for (const Json& operation : inspection["operations"]) {
    const Json& decided = operation["decided_by"];
    rows.push_back({or_dash(operation["layer"].get<std::string>()), operation["operation"].get<std::string>(),
                    dtypes_text(operation["inputs"]), dtypes_text(operation["results"]),
                    or_dash(decided.is_null() ? "" : decided.get<std::string>()), casts_text(operation["casts"])});
  }
  std::array<std::size_t, 6> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = inspection["job"].get<std::string>() + ": " + inspection["opt_level"].get<std::string>() + " in " +
                     inspection["dtype"].get<std::string>() + "\n\n";
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace lockstep::launcher
