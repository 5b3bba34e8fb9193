// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/csv_options.h"

#include <fmt/format.h>

#include <algorithm>

namespace lockstep::data {

FieldProblems problems_of(const CsvOptions& options) {
  FieldChecks checks;
  if (options.files.empty()) checks.error("files", "is required: the files, [\"train.csv\"]");
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    if (options.files[i].empty()) checks.error(fmt::format("files[{}]", i), "is required: the path of a file");
  }
  for (std::size_t i = 0; i < options.features.size(); ++i) {
    const std::string field = fmt::format("features[{}]", i);
    const auto before = options.features.begin() + static_cast<std::ptrdiff_t>(i);
    if (options.features[i].empty()) checks.error(field, "must name a column");
    if (!options.features[i].empty() && options.features[i] == options.target) {
      checks.error(field, fmt::format("\"{}\" is the target", options.target), {"target"});
    }
    if (std::find(options.features.begin(), before, options.features[i]) != before) {
      checks.error(field, fmt::format("\"{}\" is named twice", options.features[i]));
    }
  }
  if (!options.weight.empty() && options.weight == options.target) {
    checks.error("weight", fmt::format("\"{}\" is the target", options.target), {"target"});
  }
  if (!options.weight.empty() && std::ranges::find(options.features, options.weight) != options.features.end()) {
    checks.error("weight", fmt::format("\"{}\" is among the features", options.weight), {"features"});
  }
  const bool is_separator =
      options.delimiter.size() == 1 && options.delimiter.find_first_of("\"\r\n.+-eE0123456789") != 0;
  if (!is_separator) {
    checks.error("delimiter", fmt::format("must be one character that is no part of a number, no quote and no end of "
                                          "line; is \"{}\"",
                                          options.delimiter));
  }
  checks.not_negative(static_cast<double>(options.classes), "classes");
  if (options.target_kind == TargetKind::kNumbers && options.classes > 0) {
    checks.error("classes", "must be absent where targets are NUMBERS", {"target_kind"});
  }
  return checks.problems();
}

}  // namespace lockstep::data
