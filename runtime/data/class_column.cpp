// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/class_column.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/base/error.h"
#include "runtime/data/dataset_kind.h"

namespace lockstep::data {

namespace {

constexpr std::size_t kMostClasses = 1 << 16;

/// -1 where the text is no number of a class.
std::int64_t class_number(const std::string& text) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, number);
  const bool is_number = failure == std::errc() && stop == end;
  return is_number && number < kMostCountedClasses ? std::int64_t{number} : -1;
}

}  // namespace

bool ClassColumn::add(std::string_view cell, const std::string& where) {
  const auto [found, is_new] = places_.try_emplace(std::string(cell), cells_.size());
  if (is_new) {
    if (cells_.size() == kMostClasses) return false;
    cells_.push_back({found->first, where});
  }
  rows_.push_back(static_cast<std::uint32_t>(found->second));
  return true;
}

ClassColumn::Classes ClassColumn::finish(const std::vector<std::string>& names, std::int64_t count) const {
  Classes classes{.count = count, .names = names, .labels = {}};
  const auto is_number = [](const Cell& cell) { return class_number(cell.text) >= 0; };
  if (names.empty() && count == 0 && !std::ranges::all_of(cells_, is_number)) {
    for (const Cell& cell : cells_) classes.names.push_back(cell.text);
    std::ranges::sort(classes.names);
  }
  std::unordered_map<std::string_view, std::int64_t> numbers;
  for (const std::string& name : classes.names) numbers.emplace(name, std::ssize(numbers));
  const auto meaning = [&](const std::string& text) {
    if (classes.names.empty()) return class_number(text);
    const auto found = numbers.find(text);
    return found == numbers.end() ? -1 : found->second;
  };
  std::vector<std::int64_t> meanings;
  for (const Cell& cell : cells_) meanings.push_back(meaning(cell.text));
  if (count == 0 && !classes.names.empty()) classes.count = std::ssize(classes.names);
  if (classes.count == 0 && !cells_.empty()) classes.count = *std::ranges::max_element(meanings) + 1;
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (meanings[i] >= 0 && meanings[i] < classes.count) continue;
    throw StorageError(fmt::format("{}: \"{}\" is none of the {} classes{}", cells_[i].where, cells_[i].text,
                                   classes.count,
                                   classes.names.empty() ? ", which are numbers from 0 on" : " of the training data"));
  }
  for (const std::uint32_t row : rows_) classes.labels.push_back(meanings[row]);
  return classes;
}

}  // namespace lockstep::data
