// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/shards_options.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/data/formats/brace_expansion.h"

namespace lockstep::data {

FieldProblems problems_of(const ShardsOptions& options) {
  FieldChecks checks;
  if (options.files.empty()) checks.error("files", "is required: tar files, [\"train-{000..146}.tar\"]");
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    try {
      expand_braces(options.files[i]);
    } catch (const UsageError& error) {
      checks.error(fmt::format("files[{}]", i), error.what());
    }
  }
  check_image_size(options.size, options.resize, options.max_pixels, checks);
  checks.check(options.classes >= 0, "classes", ">= 0", static_cast<double>(options.classes));
  return checks.problems();
}

}  // namespace lockstep::data
