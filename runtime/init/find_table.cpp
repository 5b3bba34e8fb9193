// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/data/formats/csv_reader.h"
#include "runtime/init/files.h"
#include "runtime/init/find_kinds.h"

namespace lockstep::init {

namespace {

constexpr std::size_t kRowsLookedAt = 10000;  ///< rows
constexpr std::size_t kMostBytes = 64 << 20;
constexpr std::size_t kMostClasses = 100;  ///< of whole numbers

using Row = std::vector<std::string>;

std::optional<double> number_of(std::string_view cell) {
  while (!cell.empty() && (cell.front() == ' ' || cell.front() == '\t' || cell.front() == '+')) cell.remove_prefix(1);
  while (!cell.empty() && (cell.back() == ' ' || cell.back() == '\t')) cell.remove_suffix(1);
  double value = 0;
  const auto [end, failure] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (failure != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// The memory that a row takes: a cell of a few letters lies within its string.
std::size_t bytes_of(const Row& cells) {
  std::size_t bytes = 0;
  for (const std::string& cell : cells) bytes += sizeof cell + cell.size();
  return bytes;
}

/// At most so many, and fewer of a table so wide that they would take much memory.
std::vector<Row> first_rows(const std::string& file, char delimiter, std::size_t most) {
  data::CsvReader reader(file, delimiter);
  std::vector<Row> rows;
  std::size_t bytes = 0;
  for (Row cells; rows.size() < most && bytes < kMostBytes && reader.next(cells);) {
    bytes += bytes_of(cells);
    rows.push_back(cells);
  }
  return rows;
}

char delimiter_of(const std::string& file) {
  char best = ',';
  std::size_t most = 0;
  std::optional<StorageError> failure;
  for (const char delimiter : {',', ';', '\t', '|'}) {
    try {
      const std::vector<Row> rows = first_rows(file, delimiter, 1);
      if (rows.empty()) return best;
      if (rows[0].size() > most) {
        best = delimiter;
        most = rows[0].size();
      }
    } catch (const StorageError& error) {
      // With a wrong delimiter, text follows a cell's closing quote. Where all fail, the comma's error is thrown.
      if (!failure) failure = error;
    }
  }
  if (most == 0 && failure) throw *failure;
  return best;
}

/// Cells of one column, without the header's.
class Column {
 public:
  Column(const std::vector<Row>& rows, std::size_t first, std::size_t column) {
    for (std::size_t i = first; i < rows.size(); ++i) {
      if (column < rows[i].size()) cells_.insert(rows[i][column]);
    }
  }
  bool is_numbers() const {
    return std::ranges::all_of(cells_, [](const auto& cell) { return !!number_of(cell); });
  }
  /// Words, or few whole numbers from 0 on.
  bool is_classes() const {
    const auto is_class = [](const std::string& cell) {
      const auto value = number_of(cell);
      return value && *value >= 0 && *value < 1000 && cell.find_first_not_of("0123456789 ") == std::string::npos;
    };
    return !is_numbers() || (cells_.size() <= kMostClasses && std::ranges::all_of(cells_, is_class));
  }

 private:
  std::set<std::string> cells_;  // the different ones
};

/// Whether the file's columns are those of the training data, whose first line is given.
bool has_columns(const std::string& file, char delimiter, const Row& first, bool header) {
  try {
    const std::vector<Row> rows = first_rows(file, delimiter, 1);
    return !rows.empty() && (header ? rows[0] == first : rows[0].size() == first.size());
  } catch (const StorageError&) {
    if (delimiter_of(file) == delimiter) throw;
    return false;
  }
}

/// How many columns have a name; empty without a header.
using Uses = std::unordered_map<std::string_view, int>;

Uses uses_of(const Row& names, bool header) {
  Uses uses;
  for (const std::string& name : names) {
    if (header) ++uses[name];
  }
  return uses;
}

/// The name by which a job calls a column: its own, or its number where that is empty or the name of several, as pandas
/// writes an index without one. None where the number is another's name.
std::optional<std::string> name_of(const Row& names, const Uses& uses, std::size_t column) {
  if (!names[column].empty() && uses.contains(names[column]) && uses.at(names[column]) == 1) return names[column];
  std::string number = std::to_string(column);
  if (uses.contains(number)) return std::nullopt;
  return number;
}

std::size_t target_column(const Row& names, bool header, const std::string& target) {
  if (target.empty()) return names.size() - 1;
  const auto named = std::ranges::find(names, target);
  if (header && named != names.end()) return static_cast<std::size_t>(named - names.begin());
  std::size_t number = 0;
  const auto [end, failure] = std::from_chars(target.data(), target.data() + target.size(), number);
  if (failure == std::errc() && end == target.data() + target.size() && number < names.size()) return number;
  throw UsageError(fmt::format("the table has no column \"{}\"; it has {}", target,
                               header ? fmt::format("{}", fmt::join(names, ", ")) : std::to_string(names.size())));
}

}  // namespace

FoundData find_table(const Split& files, const std::string& target) {
  // Beside the table to learn there may be others: a sample submission.
  const auto named = std::ranges::find_if(files.train, [](const std::string& file) { return names_training(file); });
  const std::string& train = named == files.train.end() ? files.train[0] : *named;
  const char delimiter = delimiter_of(train);
  const std::vector<Row> rows = first_rows(train, delimiter, kRowsLookedAt);
  if (rows.size() < 2) throw UsageError(train + " has no two lines");
  const Row& first = rows[0];
  bool header = false;
  for (std::size_t c = 0; c < first.size(); ++c) header |= !number_of(first[c]) && Column(rows, 1, c).is_numbers();
  // A table of words alone has a header too, as RFC 4180 recommends one.
  header |= std::ranges::none_of(first, [](const std::string& cell) { return !!number_of(cell); });

  std::vector<std::string> tables, others;
  for (const std::string& file : files.train) {
    (file == train || has_columns(file, delimiter, first, header) ? tables : others).push_back(file);
  }
  if (!others.empty() && named == files.train.end()) {
    throw UsageError(fmt::format("the columns of {} differ from those of {}", others[0], train),
                     "Name the tables of one data set.");
  }

  const std::size_t at = target_column(first, header, target);
  std::vector<std::string> features, left_out, nameless;
  const Uses uses = uses_of(first, header);
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (c == at) continue;
    const auto name = name_of(first, uses, c);
    const bool numbers = Column(rows, header ? 1 : 0, c).is_numbers();
    if (!numbers) {
      left_out.push_back(name.value_or(first[c]));
    } else if (name) {
      features.push_back(*name);
    } else {
      nameless.push_back(std::to_string(c));
    }
  }
  if (features.empty()) {
    throw UsageError(train + " has no column of numbers beside the target",
                     "A job learns from numbers: give words a column of numbers each.");
  }
  const bool classes = Column(rows, header ? 1 : 0, at).is_classes();
  data::CsvOptions options{.files = tables, .header = header, .delimiter = std::string(1, delimiter)};
  if (!target.empty()) options.target = target;
  // Without a list all columns are features, whatever they are called.
  if (left_out.empty()) {
    nameless.clear();
  } else {
    options.features = features;
  }
  options.target_kind = classes ? data::TargetKind::kClasses : data::TargetKind::kNumbers;
  FoundData found{"a table", {.train = options}};
  found.notes.push_back(fmt::format("the target is column {}, {}", header ? '"' + first[at] + '"' : std::to_string(at),
                                    classes ? "classes" : "numbers"));
  if (!left_out.empty()) {
    found.notes.push_back(fmt::format("left out, because they are no numbers: {}", fmt::join(left_out, ", ")));
  }
  if (!nameless.empty()) {
    found.notes.push_back(
        fmt::format("left out, because their numbers name other columns: {}", fmt::join(nameless, ", ")));
  }
  if (!others.empty()) {
    found.notes.push_back(fmt::format("left out, because their columns are others: {}", fmt::join(others, ", ")));
  }
  options.files.clear();
  for (const std::string& file : files.eval) {
    if (has_columns(file, delimiter, first, header)) {
      options.files.push_back(file);
    } else {
      found.notes.push_back("no evaluation on " + file + ": its columns are others");
    }
  }
  if (!options.files.empty()) found.options.eval = options;
  return found;
}

}  // namespace lockstep::init
