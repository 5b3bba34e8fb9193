// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/formats/sparse_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <system_error>

namespace lockstep::data {

namespace {

constexpr std::string_view kBlanks = " \t\v\f";

/// The text up to the next blank, which is taken off `rest`; empty at its end.
std::string_view next_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlanks));
  rest.remove_prefix(word.size());
  return word;
}

SparseEntry entry_in(std::string_view word, const LineReader& reader) {
  const std::size_t colon = word.find(':');
  const std::string_view index = word.substr(0, colon);
  if (index == "qid") {
    reader.refuse(fmt::format("\"{}\" makes it a ranking, which cannot be learned", word),
                  "Take the qid out to learn the targets by themselves.");
  }
  SparseEntry entry;
  const auto [end, failure] = std::from_chars(index.data(), index.data() + index.size(), entry.index);
  const bool is_index = failure == std::errc() && end == index.data() + index.size() && entry.index >= 0;
  const std::optional<float> value =
      colon == std::string_view::npos ? std::nullopt : number_in_text(word.substr(colon + 1));
  if (!is_index || !value) reader.refuse(fmt::format("expected INDEX:VALUE, found \"{}\"", word));
  if (entry.index >= kMostSparseFeatures) {
    reader.refuse(fmt::format("index {}: {} is the most", entry.index, kMostSparseFeatures - 1));
  }
  entry.value = *value;
  return entry;
}

}  // namespace

bool read_sparse_row(std::string_view line, const LineReader& reader, SparseRow& row) {
  std::string_view rest = line.substr(0, line.find('#'));
  row.target = {};
  row.entries.clear();
  std::string_view word = next_word(rest);
  if (word.empty()) return false;
  if (word.find(':') == std::string_view::npos) {
    row.target = word;
    word = next_word(rest);
  }
  for (; !word.empty(); word = next_word(rest)) {
    const SparseEntry entry = entry_in(word, reader);
    if (!row.entries.empty() && entry.index <= row.entries.back().index) {
      reader.refuse(fmt::format("index {} comes behind index {}", entry.index, row.entries.back().index),
                    "Sort the indices of a line; each comes once.");
    }
    row.entries.push_back(entry);
  }
  return true;
}

}  // namespace lockstep::data
