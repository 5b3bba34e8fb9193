// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/data_digest.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/data/description.h"

namespace lockstep::data {

namespace {

std::string form_of(const Description& data) {
  std::string text = fmt::format("{} samples of {}", data.samples, data.inputs_text());
  if (data.vocabulary > 0) text += fmt::format(", a vocabulary of {}", data.vocabulary);
  if (data.classes > 0 && data.classes != data.vocabulary) text += fmt::format(", {} classes", data.classes);
  if (data.classes == 0 || data.target_shape.rank() > 0) text += ", targets of " + data.target_shape.str();
  return text + (data.weighted ? ", weighted" : "");
}

}  // namespace

DataDigest digest_of(const std::string& data, const Dataset& dataset) {
  DataHashes hashes;
  dataset.add_to_digest(hashes);
  return {data, form_of(describe(dataset)), hashes.labels.hex(), hashes.content.hex()};
}

std::vector<std::string> changes(const std::vector<DataDigest>& before, const std::vector<DataDigest>& now) {
  std::vector<std::string> lines;
  for (const DataDigest& old : before) {
    const auto found = std::ranges::find(now, old.data, &DataDigest::data);
    if (found == now.end()) continue;
    if (old.form != found->form) {
      lines.push_back(fmt::format("{}: {} -> {}", old.data, old.form, found->form));
      continue;
    }
    if (old.labels != found->labels) lines.push_back(old.data + ": labels differ");
    if (old.content != found->content) lines.push_back(old.data + ": content differs");
  }
  return lines;
}

}  // namespace lockstep::data
