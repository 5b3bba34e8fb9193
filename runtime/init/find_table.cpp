// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/base/nearest.h"
#include "runtime/data/formats/csv_reader.h"
#include "runtime/data/table_encoding.h"
#include "runtime/init/files.h"
#include "runtime/init/find_kinds.h"
#include "runtime/init/table_column.h"

namespace lockstep::init {

namespace {

constexpr std::size_t kRowsLookedAt = 10000;  ///< rows
constexpr std::size_t kMostBytes = 64 << 20;

/// The memory that a row takes: a cell of a few letters lies within its string.
std::size_t bytes_of(const TableRow& cells) {
  std::size_t bytes = 0;
  for (const std::string& cell : cells) bytes += sizeof cell + cell.size();
  return bytes;
}

/// At most so many, and fewer of a table so wide that they would take much memory.
std::vector<TableRow> first_rows(const std::string& file, char delimiter, std::size_t most) {
  data::CsvReader reader(file, delimiter);
  std::vector<TableRow> rows;
  std::size_t bytes = 0;
  for (TableRow cells; rows.size() < most && bytes < kMostBytes && reader.next(cells);) {
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
      const std::vector<TableRow> rows = first_rows(file, delimiter, 1);
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

/// Whether the file's columns are those of the training data, whose first line is given.
bool has_columns(const std::string& file, char delimiter, const TableRow& first, bool header) {
  try {
    const std::vector<TableRow> rows = first_rows(file, delimiter, 1);
    return !rows.empty() && (header ? rows[0] == first : rows[0].size() == first.size());
  } catch (const StorageError&) {
    if (delimiter_of(file) == delimiter) throw;
    return false;
  }
}

/// How many columns have a name; empty without a header.
using Uses = std::unordered_map<std::string_view, int>;

Uses uses_of(const TableRow& names, bool header) {
  Uses uses;
  for (const std::string& name : names) {
    if (header) ++uses[name];
  }
  return uses;
}

/// The name by which a job calls a column: its own, or its number where that is empty or the name of several, as pandas
/// writes an index without one. None where the number is another's name.
std::optional<std::string> name_of(const TableRow& names, const Uses& uses, std::size_t column) {
  if (!names[column].empty() && uses.contains(names[column]) && uses.at(names[column]) == 1) return names[column];
  std::string number = std::to_string(column);
  if (uses.contains(number)) return std::nullopt;
  return number;
}

std::size_t target_column(const TableRow& names, bool header, const std::string& target) {
  if (target.empty()) return names.size() - 1;
  const auto named = std::ranges::find(names, target);
  if (header && named != names.end()) return static_cast<std::size_t>(named - names.begin());
  std::size_t number = 0;
  const auto [end, failure] = std::from_chars(target.data(), target.data() + target.size(), number);
  if (failure == std::errc() && end == target.data() + target.size() && number < names.size()) return number;
  throw UsageError(fmt::format("the table has no column \"{}\"; it has {}", target,
                               header ? name_list(target, names) : std::to_string(names.size())));
}

/// What becomes of the columns beside the target.
struct Features {
  std::vector<std::string> columns;   ///< those to learn from, as a job calls them
  std::vector<std::string> left_out;  ///< "NAME, because WHY"
  std::vector<std::string> blank;     ///< of the columns, "NAME (177 of 891 lines)"
  std::vector<std::string> words;     ///< of the columns, "NAME (3)": how many different ones
  std::vector<std::string> embedded;  ///< those of them that have more than kFewWords
  bool numbers = false;               ///< some column is of numbers
};

struct LookedAtTable {
  std::vector<LookedAtColumn> columns;
  std::size_t lines = 0;  ///< without headers
};

/// The columns of `rows`, the first ones of the file `first`, and what the lines behind them in all files have besides.
LookedAtTable look_at_columns(const std::vector<TableRow>& rows, bool header, char delimiter,
                              const std::vector<std::string>& files, const std::string& first) {
  const std::size_t headers = header ? 1 : 0;
  LookedAtTable table{.columns = {}, .lines = rows.size() - headers};
  std::vector<LookedAtColumn>& columns = table.columns;
  for (std::size_t c = 0; c < rows[0].size(); ++c) columns.emplace_back(rows, headers, c);
  for (const std::string& file : files) {
    data::CsvReader reader(file, delimiter);
    std::size_t seen = file == first ? rows.size() : headers;
    for (TableRow cells; reader.next(cells);) {
      if (seen > 0) {
        --seen;
        continue;
      }
      ++table.lines;
      // A line of another length is refused where the table is read.
      for (std::size_t c = 0; c < std::min(cells.size(), columns.size()); ++c) columns[c].look_further(cells[c]);
    }
  }
  return table;
}

/// Of a table whose first line is `first`; it has their names, with `header`.
Features features_of(const LookedAtTable& table, const TableRow& first, bool header, std::size_t target) {
  Features features;
  const Uses uses = uses_of(first, header);
  // A table of a place and what is measured there has nothing else to learn from.
  const bool alone = first.size() == 2;
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (c == target) continue;
    const LookedAtColumn& column = table.columns[c];
    const std::optional<std::string> name = name_of(first, uses, c);
    const std::string title = name.value_or(std::to_string(c));
    std::string reason = alone && column.numbers_lines() ? std::string() : column.reason_to_leave_out();
    if (reason.empty() && !name) reason = "its number names another column";
    if (!reason.empty()) {
      features.left_out.push_back(fmt::format("{}, because {}", title, reason));
      continue;
    }
    features.columns.push_back(title);
    features.numbers = features.numbers || column.is_numbers();
    if (column.is_words()) {
      features.words.push_back(fmt::format("{} ({})", title, column.different()));
      if (column.different() > kFewWords) features.embedded.push_back(features.words.back());
    }
    if (column.blanks() == 0) continue;
    features.blank.push_back(fmt::format("{} ({} of {} lines)", title, column.blanks(), table.lines));
  }
  return features;
}

/// "a, b, c and 12 more"
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::ptrdiff_t kNamed = 6;
  if (std::ssize(names) <= kNamed + 1) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} more", fmt::join(names.begin(), names.begin() + kNamed, ", "),
                     std::ssize(names) - kNamed);
}

/// How cells become numbers, and why.
void take_rules(const Features& features, data::CsvOptions& options, FoundData& found) {
  if (!features.left_out.empty()) found.reasons.push_back({"features", "all but those that are left out above"});
  if (!features.blank.empty()) {
    options.blanks = data::BlankCells::kFill;
    found.reasons.push_back({"blanks",
                             "with the median or the most frequent word of the training data, and a number "
                             "that says so: " +
                                 some_of(features.blank)});
  }
  if (!features.words.empty()) {
    options.words = data::WordCells::kOneHot;
    found.reasons.push_back({"words", "a number for each word: " + some_of(features.words)});
  }
  if (!features.embedded.empty()) {
    options.one_hot_up_to = kFewWords;
    found.reasons.push_back(
        {"one_hot_up_to", "of columns with more words mlp learns an embedding: " + some_of(features.embedded)});
  }
  if (features.numbers) {
    options.standardize = true;
    found.reasons.push_back({"standardize", "numbers become (x - mean) / std of the training data"});
  }
}

}  // namespace

FoundData find_table(const Split& files, const std::string& target) {
  // Beside the table to learn there may be others: a sample submission.
  const auto named = std::ranges::find_if(files.train, [](const std::string& file) { return names_training(file); });
  const std::string& train = named == files.train.end() ? files.train[0] : *named;
  const char delimiter = delimiter_of(train);
  const std::vector<TableRow> rows = first_rows(train, delimiter, kRowsLookedAt);
  if (rows.size() < 2) throw UsageError(train + " has no two lines");
  const TableRow& first = rows[0];
  bool header = false;
  for (std::size_t c = 0; c < first.size(); ++c) {
    if (number_in_cell(first[c]) || data::is_blank_cell(first[c])) continue;
    header |= LookedAtColumn(rows, 1, c).is_numbers();
  }
  // A table of words alone has a header too, as RFC 4180 recommends one.
  header |= std::ranges::none_of(first, [](const std::string& cell) { return !!number_in_cell(cell); });

  std::vector<std::string> tables, others;
  for (const std::string& file : files.train) {
    (file == train || has_columns(file, delimiter, first, header) ? tables : others).push_back(file);
  }
  if (!others.empty() && named == files.train.end()) {
    throw UsageError(fmt::format("the columns of {} differ from those of {}", others[0], train),
                     "Name the tables of one data set.");
  }

  const std::size_t at = target_column(first, header, target);
  const LookedAtTable table = look_at_columns(rows, header, delimiter, tables, train);
  const Features features = features_of(table, first, header, at);
  if (features.columns.empty()) {
    throw UsageError(
        fmt::format("{} has no column to learn from beside the target{}", train,
                    features.left_out.empty() ? "" : ": " + fmt::format("{}", fmt::join(features.left_out, "; "))),
        "A job learns from numbers, and from words of which some lines have the same.");
  }
  const bool classes = table.columns[at].is_classes();
  data::CsvOptions options{.files = tables, .header = header, .delimiter = std::string(1, delimiter)};
  if (!target.empty()) options.target = target;
  // Without a list all columns are features, whatever they are called.
  if (!features.left_out.empty()) options.features = features.columns;
  options.target_kind = classes ? data::TargetKind::kClasses : data::TargetKind::kNumbers;
  FoundData found{"a table", {}};
  found.notes.push_back(fmt::format("the target is column {}, {}", header ? '"' + first[at] + '"' : std::to_string(at),
                                    classes ? "classes" : "numbers"));
  for (const std::string& column : features.left_out) found.notes.push_back("left out: " + column);
  std::vector<std::string> eval_files;
  for (const std::string& file : files.eval) {
    if (has_columns(file, delimiter, first, header)) {
      eval_files.push_back(file);
    } else {
      found.notes.push_back("no evaluation on " + file + ": its columns are others");
    }
  }
  if (!eval_files.empty()) {
    // Columns, and how they are encoded, are the training data's.
    found.options.eval = data::CsvOptions{
        .files = eval_files, .header = header, .delimiter = options.delimiter, .target_kind = options.target_kind};
  }
  take_rules(features, options, found);
  found.options.train = options;
  if (!others.empty()) {
    found.notes.push_back(fmt::format("left out, because their columns are others: {}", fmt::join(others, ", ")));
  }
  return found;
}

}  // namespace lockstep::init
