// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/base/hash.h"
#include "runtime/base/nearest.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/class_column.h"
#include "runtime/data/formats/csv_reader.h"
#include "runtime/data/formats/line_reader.h"

namespace lockstep::data {

namespace {

/// Which columns count, and what messages call them.
struct Columns {
  std::vector<std::string> names;  ///< of all; none without a header
  std::size_t count = 0;
  std::vector<std::size_t> features;
  std::size_t target = 0;
  std::optional<std::size_t> weight = {};
  std::vector<std::size_t> categories;  ///< among the features, that the options name

  /// None where one of them is empty or names several columns.
  std::vector<std::string> names_of(const std::vector<std::size_t>& chosen) const {
    std::unordered_map<std::string_view, int> uses;
    for (const std::string& name : names) ++uses[name];
    std::vector<std::string> found;
    for (const std::size_t column : chosen) {
      if (names.empty() || names[column].empty() || uses[names[column]] > 1) return {};
      found.push_back(names[column]);
    }
    return found;
  }
  std::string title(std::size_t column) const {
    return names.empty() ? std::to_string(column) : fmt::format("\"{}\"", names[column]);
  }
};

std::size_t find_column(const Columns& columns, const std::string& text, const CsvReader& reader) {
  const auto found = std::ranges::find(columns.names, text);
  if (found != columns.names.end()) {
    if (std::find(found + 1, columns.names.end(), text) != columns.names.end()) {
      reader.refuse(fmt::format("two columns are named \"{}\"", text),
                    "Name the column by its number, counted from 0.");
    }
    return static_cast<std::size_t>(found - columns.names.begin());
  }
  std::size_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure == std::errc() && end == text.data() + text.size() && number < columns.count) return number;
  reader.refuse(columns.names.empty()
                    ? fmt::format("no column {}: there are {}, counted from 0", text, columns.count)
                    : fmt::format("no column \"{}\": there are {}", text, name_list(text, columns.names)));
}

/// `first` holds the cells of the first line: names, or those of a sample.
Columns columns_of(const CsvOptions& options, const std::vector<std::string>& first, const CsvReader& reader) {
  Columns columns;
  columns.count = first.size();
  if (options.header) columns.names = first;
  columns.target = options.target.empty() ? first.size() - 1 : find_column(columns, options.target, reader);
  if (!options.weight.empty()) columns.weight = find_column(columns, options.weight, reader);
  if (columns.weight == columns.target) reader.refuse("the target is the weight");
  for (const std::string& feature : options.features) {
    const std::size_t column = find_column(columns, feature, reader);
    // One by its name, and one by its number.
    if (std::ranges::find(columns.features, column) != columns.features.end()) {
      reader.refuse(fmt::format("column {} is named twice among the features", columns.title(column)));
    }
    columns.features.push_back(column);
    if (columns.features.back() == columns.target) reader.refuse("the target is among the features");
    if (columns.features.back() == columns.weight) reader.refuse("the weight is among the features");
  }
  for (std::size_t column = 0; options.features.empty() && column < columns.count; ++column) {
    if (column != columns.target && column != columns.weight) columns.features.push_back(column);
  }
  if (columns.features.empty()) reader.refuse("no column is left beside the target", "Check the delimiter.");
  for (const std::string& category : options.categories) {
    columns.categories.push_back(find_column(columns, category, reader));
    if (std::ranges::find(columns.features, columns.categories.back()) != columns.features.end()) continue;
    reader.refuse(
        fmt::format("column {} of `categories` is none of the features", columns.title(columns.categories.back())));
  }
  return columns;
}

float number_of(const std::string& cell, const Columns& columns, std::size_t column, const CsvReader& reader) {
  if (const std::optional<float> number = number_in_text(trimmed_cell(cell))) return *number;
  reader.refuse(fmt::format("column {}: expected a number, found \"{}\"", columns.title(column), cell),
                "Mend the cell, or leave its line out.");
}

/// A hash of the text of these cells. Numbers that are made of them may depend on other rows.
std::uint64_t content_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& features) {
  Hash128 hash;
  for (const std::size_t column : features) {
    hash.update(trimmed_cell(cells[column]));
    hash.update(std::string_view("\0", 1));
  }
  return hash.high64();
}

/// The memory that a sample of so many numbers and tokens takes; a class is its place among the cells first, then its
/// number.
std::size_t bytes_of_row(const Columns& columns, std::size_t width, std::size_t tokens, bool numbers) {
  const std::size_t target = numbers ? sizeof(float) : sizeof(std::uint32_t) + sizeof(std::int64_t);
  return (width + (columns.weight ? 1 : 0)) * sizeof(float) + tokens * sizeof(std::int64_t) + sizeof(std::uint64_t) +
         target;
}

[[noreturn]] void throw_no_samples(const CsvOptions& options) {
  throw StorageError(fmt::format("{}: holds no samples", fmt::join(options.files, ", ")));
}

/// The columns as the files' first line tells them. Throws StorageError where all files are empty.
Columns columns_of_files(const CsvOptions& options) {
  for (const std::string& file : options.files) {
    CsvReader reader(file, options.delimiter[0]);
    std::vector<std::string> cells;
    if (reader.next(cells)) return columns_of(options, cells, reader);
  }
  throw_no_samples(options);
}

/// Calls `visit` with the cells of each line of all files but the headers, the reader and the file's name.
template <class Visit>
void for_each_line(const CsvOptions& options, const Columns& columns, const Visit& visit) {
  std::vector<std::string> cells;
  for (const std::string& file : options.files) {
    CsvReader reader(file, options.delimiter[0]);
    bool header = options.header;
    while (reader.next(cells)) {
      if (cells.size() != columns.count) {
        reader.refuse(fmt::format("expected {} cells, found {}", columns.count, cells.size()));
      }
      if (!header) {
        visit(cells, reader, file);
        continue;
      }
      if (cells != columns.names) reader.refuse("the columns differ from those of " + options.files[0]);
      header = false;
    }
  }
}

/// What `use` gives; its error of a cell gets the place of the line.
template <class Use>
auto in_line(const CsvReader& reader, const Use& use) {
  try {
    return use();
  } catch (const StorageError& error) {
    reader.refuse(error.what(), error.advice());
  }
}

/// Learned from the options' own files, but for what the target says.
TableEncoding learned_encoding(const CsvOptions& options, const Columns& columns, MemoryBudget& budget) {
  TableEncoding encoding{.header = options.header,
                         .delimiter = options.delimiter,
                         .file_columns = static_cast<std::int64_t>(columns.count),
                         .fills_blanks = options.blanks == BlankCells::kFill};
  const std::vector<std::string> names = columns.names_of(columns.features);
  for (std::size_t i = 0; i < columns.features.size(); ++i) {
    const std::size_t position = columns.features[i];
    const bool category = std::ranges::find(columns.categories, position) != columns.categories.end();
    encoding.columns.push_back({.name = names.empty() ? "" : names[i],
                                .position = static_cast<std::int64_t>(position),
                                .kind = category ? TableColumn::Kind::kCategory : TableColumn::Kind::kNumber});
  }
  const TableLearner::Rules rules{.fill_blanks = encoding.fills_blanks,
                                  .one_hot = options.words == WordCells::kOneHot,
                                  .one_hot_up_to = options.one_hot_up_to,
                                  .standardize = options.standardize};
  if (rules == TableLearner::Rules() && columns.categories.empty()) return encoding;
  TableLearner learner(std::move(encoding.columns), rules);
  for_each_line(options, columns,
                [&](const auto& cells, const CsvReader&, const std::string&) { learner.look_at(cells); });
  for_each_line(options, columns, [&](const auto& cells, const CsvReader& reader, const std::string& file) {
    budget.take(in_line(reader, [&] { return learner.add(cells); }), file, "Leave columns out.");
  });
  if (learner.rows() == 0) throw_no_samples(options);
  encoding.columns = learner.finish();
  return encoding;
}

}  // namespace

FieldProblems problems_of(const CsvOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
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
  for (std::size_t i = 0; i < options.categories.size(); ++i) {
    const std::string field = fmt::format("categories[{}]", i);
    if (options.categories[i].empty()) checks.error(field, "must name a column");
    if (!options.categories[i].empty() && options.categories[i] == options.target) {
      checks.error(field, fmt::format("\"{}\" is the target", options.target), {"target"});
    }
  }
  if (options.target_kind == TargetKind::kNumbers && options.classes > 0) {
    checks.error("classes", "must be absent where targets are NUMBERS", {"target_kind"});
  }
  return checks.problems();
}

CsvDataset::CsvDataset(const CsvOptions& options, MemoryBudget budget) {
  require_none(problems_of(options), "csv");
  const bool numbers = options.target_kind == TargetKind::kNumbers;
  const Columns columns = columns_of_files(options);
  encoding_ = options.encoding ? *options.encoding : learned_encoding(options, columns, budget);
  if (encoding_.columns.size() != columns.features.size()) {
    throw UsageError(fmt::format("{} has {} columns to learn from, but the training data {}", options.files[0],
                                 columns.features.size(), encoding_.columns.size()));
  }
  unknown_.resize(encoding_.columns.size());
  rows_.columns = encoding_.width();
  rows_.more_inputs = encoding_.more_inputs();
  const auto width = static_cast<std::size_t>(rows_.columns);
  const std::size_t embedded = rows_.more_inputs.size();
  const std::size_t target = columns.target;
  ClassColumn classes;
  for_each_line(options, columns, [&](const auto& cells, const CsvReader& reader, const std::string& file) {
    budget.take(bytes_of_row(columns, width, embedded, numbers), file,
                "Save the data as .npy arrays, which are read as they are drawn.");
    rows_.contents.push_back(content_of(cells, columns.features));
    rows_.features.resize(rows_.features.size() + width);
    rows_.tokens.resize(rows_.tokens.size() + embedded);
    const EncodedRow encoded = in_line(reader, [&] {
      return encode(encoding_, cells, columns.features, std::span(rows_.features).last(width),
                    std::span(rows_.tokens).last(embedded));
    });
    for (const std::size_t column : encoded.unknown) ++unknown_[column];
    if (columns.weight) {
      const std::string& weight = cells[*columns.weight];
      rows_.weights.push_back(number_of(weight, columns, *columns.weight, reader));
      if (rows_.weights.back() < 0) {
        reader.refuse(
            fmt::format("column {}: expected a weight >= 0, found \"{}\"", columns.title(*columns.weight), weight));
      }
    }
    if (numbers) {
      rows_.numbers.push_back(number_of(cells[target], columns, target, reader));
    } else if (trimmed_cell(cells[target]).empty()) {
      reader.refuse(fmt::format("column {}: expected a class, found an empty cell", columns.title(target)),
                    "Leave the line out, or name the column that is to be learnt: target, or init's --target.");
    } else if (!classes.add(trimmed_cell(cells[target]),
                            fmt::format("{}:{}: column {}", file, reader.line(), columns.title(target)))) {
      reader.refuse(fmt::format("column {} has too many different classes", columns.title(target)),
                    "Say target_kind: NUMBERS to learn numbers.");
    }
    ++rows_.count;
  });
  if (rows_.count == 0) throw_no_samples(options);
  if (!numbers) {
    ClassColumn::Classes found = classes.finish(options.class_names, options.classes);
    rows_.classes = found.count;
    rows_.class_names = std::move(found.names);
    rows_.labels = std::move(found.labels);
  }
  if (options.encoding) return;
  if (const auto name = columns.names_of({target}); !name.empty()) encoding_.target = name.front();
  if (columns.weight) {
    if (const auto name = columns.names_of({*columns.weight}); !name.empty()) encoding_.weight = name.front();
  }
  encoding_.classes = rows_.classes;
  encoding_.class_names = rows_.class_names;
}

void CsvDataset::add_to_preparation(Preparation& preparation) const {
  TableDataset::add_to_preparation(preparation);
  preparation.table = encoding_;
}

std::vector<std::string> CsvDataset::remarks() const {
  std::vector<std::string> remarks;
  for (std::size_t i = 0; i < unknown_.size(); ++i) {
    if (unknown_[i] == 0) continue;
    remarks.push_back(
        fmt::format("column {}: {} of {} cells hold categories that the training data lack; they are "
                    "encoded as none of the known ones",
                    title_of(encoding_.columns[i]), unknown_[i], rows_.count));
  }
  return remarks;
}

bool has_csv_column(const CsvOptions& options, const std::string& name) {
  if (!options.header || options.files.empty()) return false;
  CsvReader reader(options.files[0], options.delimiter[0]);
  std::vector<std::string> names;
  return reader.next(names) && std::ranges::find(names, name) != names.end();
}

std::vector<std::string> CsvKind::class_names(const Options& options) {
  if (options.target_kind == TargetKind::kNumbers || !options.class_names.empty()) return options.class_names;
  return options.encoding ? options.encoding->class_names : CsvDataset(options).class_names();
}

Description CsvKind::describe(const Options& options) {
  const CsvDataset dataset(options);
  Description description = dataset.describe();
  description.remarks = dataset.remarks();
  return description;
}

namespace {

/// Evaluation data are encoded as the training data are, so they need not say how.
template <class Value>
void require_as_trained(const CsvOptions& eval, const CsvOptions& train, Value CsvOptions::*member,
                        std::string_view field) {
  if (eval.*member == CsvOptions().*member || eval.*member == train.*member) return;
  throw FieldError(fmt::format("data.eval.csv.{}", field), "must be that of data.train.csv, or be left out");
}

}  // namespace

void CsvKind::become_eval(Options& eval, const Options* train) {
  if (train == nullptr) return;
  require_as_trained(eval, *train, &CsvOptions::blanks, "blanks");
  require_as_trained(eval, *train, &CsvOptions::words, "words");
  require_as_trained(eval, *train, &CsvOptions::categories, "categories");
  require_as_trained(eval, *train, &CsvOptions::one_hot_up_to, "one_hot_up_to");
  require_as_trained(eval, *train, &CsvOptions::standardize, "standardize");
  // Who has it needs no training files.
  const TableEncoding encoding = train->encoding ? *train->encoding : CsvDataset(*train).encoding();
  // Columns are the training data's by name, whatever their order in the evaluation data's files.
  const bool by_name = eval.header && encoding.is_by_name();
  const bool alike = eval.header == train->header;
  if (eval.features.empty() && (by_name || alike)) eval.features = by_name ? encoding.names() : train->features;
  if (eval.target.empty() && eval.header) eval.target = encoding.target;
  if (eval.target.empty() && alike) eval.target = train->target;
  // Evaluation data need not have weights.
  if (eval.weight.empty() && !encoding.weight.empty() && has_csv_column(eval, encoding.weight)) {
    eval.weight = encoding.weight;
  }
  eval.categories.clear();
  eval.encoding = encoding;
  if (eval.classes > 0) return;
  if (eval.target_kind == TargetKind::kNumbers || train->target_kind == TargetKind::kNumbers) return;
  eval.classes = encoding.classes;
  eval.class_names = encoding.class_names;
}

}  // namespace lockstep::data
