// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/table.h"

#include <algorithm>
#include <span>

#include "runtime/data/data_digest.h"
#include "runtime/data/formats/content_hash.h"
#include "runtime/data/preparation.h"

namespace lockstep::data {

Description TableDataset::describe() const {
  Description description = data::describe(*this);
  description.labels = rows_.labels;
  return description;
}

TargetSummary TableDataset::target_summary() const {
  if (rows_.classes > 0) return {.common_class = most_common(rows_.labels)};
  double sum = 0;
  for (const float number : rows_.numbers) sum += static_cast<double>(number);
  return {.mean = {sum / static_cast<double>(rows_.count)}};
}

void TableDataset::get(const SampleKey& key, const Sample& sample) const {
  std::copy_n(rows_.features.begin() + key.index * rows_.columns, rows_.columns, sample.values.begin());
  const auto at = static_cast<std::size_t>(key.index);
  const std::size_t tokens = rows_.more_inputs.size();
  for (std::size_t i = 0; i < tokens; ++i) sample.more_inputs[i].tokens[0] = rows_.tokens[at * tokens + i];
  if (!rows_.weights.empty() && !sample.weight.empty()) sample.weight[0] = rows_.weights[at];
  if (rows_.classes > 0) {
    sample.labels[0] = rows_.labels[at];
  } else {
    sample.target[0] = rows_.numbers[at];
  }
}

void TableDataset::add_to_digest(DataHashes& hashes) const {
  for (const std::string& name : rows_.class_names) hashes.labels.update(name + '\0');
  add_bytes(std::as_bytes(std::span(rows_.labels)), hashes.labels);
  add_bytes(std::as_bytes(std::span(rows_.numbers)), hashes.labels);
  add_bytes(std::as_bytes(std::span(rows_.weights)), hashes.labels);
  add_bytes(std::as_bytes(std::span(rows_.features)), hashes.content);
  add_bytes(std::as_bytes(std::span(rows_.tokens)), hashes.content);
}

void TableDataset::add_to_preparation(Preparation& preparation) const { preparation.class_names = rows_.class_names; }

void TableDataset::add_content(std::int64_t index, Hash128& hash) const {
  const auto at = static_cast<std::size_t>(index);
  if (!rows_.contents.empty()) return hash.update(std::as_bytes(std::span(&rows_.contents[at], 1)));
  const auto columns = static_cast<std::size_t>(rows_.columns);
  const std::span<const float> row = std::span(rows_.features).subspan(at * columns, columns);
  std::size_t length = columns;
  while (length > 0 && row[length - 1] == 0) --length;
  hash.update(std::as_bytes(row.first(length)));
}

}  // namespace lockstep::data
