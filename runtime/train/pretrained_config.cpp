// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/pretrained_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "model_zoo/hub_config.h"
#include "runtime/base/error.h"

namespace lockstep::train {

std::vector<std::string> require_config_of(const std::filesystem::path& weights, const model_zoo::ModelOptions& options,
                                           bool whole) {
  const std::filesystem::path path = weights.parent_path() / "config.json";
  if (path == weights || !std::filesystem::is_regular_file(path)) return {};
  model_zoo::HubDifferences found = model_zoo::differences_of(model_zoo::HubConfig(path), options, whole);
  if (found.wrong.empty()) return std::move(found.said);
  throw FieldError(
      "init_from.path",
      fmt::format("{} tells of another model than the job's: {}", path.string(), fmt::join(found.wrong, "; ")),
      "Set the fields of the job's model so: lockstep init DATA --model FOLDER writes them. Where the model does not "
      "have it, these weights would compute other numbers than they were trained to; a copy of them in a folder of its "
      "own is not compared.");
}

}  // namespace lockstep::train
