// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/normalize_target.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"

namespace lockstep::data {

namespace {

void require_as_many(const std::vector<float>& values, const std::string& path, const Shape& target) {
  const auto channels = static_cast<std::size_t>(target.rank() == 0 ? 1 : target.back());
  if (values.size() <= 1 || values.size() == channels) return;
  throw FieldError(path, fmt::format("has {} values, but targets of shape {} have {} channel{}", values.size(),
                                     target.str(), channels, channels == 1 ? "" : "s"));
}

}  // namespace

void require_normalize_target(const NormalizeOptions& options, const Description& data) {
  if (options == NormalizeOptions()) return;
  if (data.classes > 0)
    throw FieldError("data.normalize_target", "needs targets that are numbers, but they are classes");
  require_none(problems_in_fields(options), "data.normalize_target");
  require_as_many(options.mean, "data.normalize_target.mean", data.target_shape);
  require_as_many(options.std, "data.normalize_target.std", data.target_shape);
}

NormalizeTarget::NormalizeTarget(DatasetPtr base, const NormalizeOptions& options)
    : Transform(std::move(base)), scale_{.mean = options.mean, .std = options.std} {
  require_normalize_target(options, describe(*this));
}

TargetSummary NormalizeTarget::target_summary() const {
  TargetSummary summary = Transform::target_summary();
  summary.scale = scale_;
  return summary;
}

void NormalizeTarget::apply(const SampleKey&, const Sample& sample) const {
  for (std::size_t i = 0; i < sample.target.size(); ++i) {
    const float mean = scale_.mean.empty() ? 0 : scale_.mean[i % scale_.mean.size()];
    const float std = scale_.std.empty() ? 1 : scale_.std[i % scale_.std.size()];
    sample.target[i] = (sample.target[i] - mean) / std;
  }
}

}  // namespace lockstep::data
