// SPDX-License-Identifier: Apache-2.0
#include "model_zoo/checks.h"

#include <charconv>

#include "runtime/tensor/error.h"

namespace lockstep::model_zoo {

void require(bool holds, const std::string& path, std::string_view rule, double value) {
  if (holds) return;
  char number[32];  // the shortest text that reads back as the same number
  char* const end = std::to_chars(number, number + sizeof(number), value).ptr;
  throw FieldError(path, "must be " + std::string(rule) + ", is " + std::string(&number[0], end));
}

void require_at_least_one(std::int64_t value, const std::string& path) {
  require(value >= 1, path, ">= 1", static_cast<double>(value));
}

void require_at_least_one(const std::vector<std::int64_t>& values, const std::string& path) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    require_at_least_one(values[i], path + "[" + std::to_string(i) + "]");
  }
}

void require_fraction(double value, const std::string& path) {
  require(value >= 0 && value < 1, path, ">= 0 and < 1", value);
}

void require_images(const ModelInput& input, const std::string& path) {
  if (input.sample_shape.rank() == 3) return;
  throw FieldError(path, "needs samples [height, width, channels], the data has " + input.sample_shape.str());
}

}  // namespace lockstep::model_zoo
