// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/base/hash.h"
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
                    : fmt::format("no column \"{}\": there are {}", text, fmt::join(columns.names, ", ")));
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
  return columns;
}

/// A cell without the blanks around it.
std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

float number_of(const std::string& cell, const Columns& columns, std::size_t column, const CsvReader& reader) {
  if (const std::optional<float> number = number_in_text(trimmed(cell))) return *number;
  reader.refuse(fmt::format("column {}: expected a number, found \"{}\"", columns.title(column), cell),
                "Mend the cell, or name the columns to learn from in `features`.");
}

/// A hash of the text of these cells. Numbers that are made of them may depend on other rows.
std::uint64_t content_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& features) {
  Hash128 hash;
  for (const std::size_t column : features) {
    hash.update(trimmed(cells[column]));
    hash.update(std::string_view("\0", 1));
  }
  return hash.high64();
}

/// The memory that a sample takes; a class is its place among the cells first, then its number.
std::size_t bytes_of_row(const Columns& columns, bool numbers) {
  const std::size_t target = numbers ? sizeof(float) : sizeof(std::uint32_t) + sizeof(std::int64_t);
  return (columns.features.size() + (columns.weight ? 1 : 0)) * sizeof(float) + sizeof(std::uint64_t) + target;
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
  if (options.target_kind == TargetKind::kNumbers && options.classes > 0) {
    checks.error("classes", "must be absent where targets are NUMBERS", {"target_kind"});
  }
  return checks.problems();
}

CsvDataset::CsvDataset(const CsvOptions& options, MemoryBudget budget) {
  require_none(problems_of(options), "csv");
  const bool numbers = options.target_kind == TargetKind::kNumbers;
  std::optional<Columns> columns;
  ClassColumn classes;
  std::vector<std::string> cells;
  for (const std::string& file : options.files) {
    CsvReader reader(file, options.delimiter[0]);
    bool header = options.header;
    while (reader.next(cells)) {
      if (!columns) columns = columns_of(options, cells, reader);
      if (cells.size() != columns->count) {
        reader.refuse(fmt::format("expected {} cells, found {}", columns->count, cells.size()));
      }
      if (header) {
        if (cells != columns->names) reader.refuse("the columns differ from those of " + options.files[0]);
        header = false;
        continue;
      }
      budget.take(bytes_of_row(*columns, numbers), file,
                  "Save the data as .npy arrays, which are read as they are drawn.");
      rows_.contents.push_back(content_of(cells, columns->features));
      for (const std::size_t column : columns->features) {
        rows_.features.push_back(number_of(cells[column], *columns, column, reader));
      }
      if (columns->weight) {
        rows_.weights.push_back(number_of(cells[*columns->weight], *columns, *columns->weight, reader));
        if (rows_.weights.back() < 0) {
          reader.refuse(fmt::format("column {}: expected a weight >= 0, found \"{}\"", columns->title(*columns->weight),
                                    cells[*columns->weight]));
        }
      }
      const std::size_t target = columns->target;
      if (numbers) {
        rows_.numbers.push_back(number_of(cells[target], *columns, target, reader));
      } else if (trimmed(cells[target]).empty()) {
        reader.refuse(fmt::format("column {}: expected a class, found an empty cell", columns->title(target)));
      } else if (!classes.add(std::string(trimmed(cells[target])),
                              fmt::format("{}:{}: column {}", file, reader.line(), columns->title(target)))) {
        reader.refuse(fmt::format("column {} has too many different classes", columns->title(target)),
                      "Say target_kind: NUMBERS to learn numbers.");
      }
      ++rows_.count;
    }
  }
  if (rows_.count == 0) throw StorageError(fmt::format("{}: holds no samples", fmt::join(options.files, ", ")));
  rows_.columns = std::ssize(columns->features);
  feature_names_ = columns->names_of(columns->features);
  if (const auto target = columns->names_of({columns->target}); !target.empty()) target_name_ = target.front();
  if (columns->weight) {
    if (const auto weight = columns->names_of({*columns->weight}); !weight.empty()) weight_name_ = weight.front();
  }
  if (numbers) return;
  ClassColumn::Classes found = classes.finish(options.class_names, options.classes);
  rows_.classes = found.count;
  rows_.class_names = std::move(found.names);
  rows_.labels = std::move(found.labels);
}

bool has_csv_column(const CsvOptions& options, const std::string& name) {
  if (!options.header || options.files.empty()) return false;
  CsvReader reader(options.files[0], options.delimiter[0]);
  std::vector<std::string> names;
  return reader.next(names) && std::ranges::find(names, name) != names.end();
}

std::vector<std::string> CsvKind::class_names(const Options& options) {
  if (options.target_kind == TargetKind::kNumbers || !options.class_names.empty()) return options.class_names;
  return CsvDataset(options).class_names();
}

void CsvKind::become_eval(Options& eval, const Options* train) {
  if (train == nullptr) return;
  const CsvDataset dataset(*train);
  // Columns are the training data's by name, whatever their order in the evaluation data's files.
  if (eval.header && eval.features.empty()) eval.features = dataset.feature_names();
  if (eval.header && eval.target.empty()) eval.target = dataset.target_name();
  // Evaluation data need not have weights.
  if (eval.weight.empty() && !dataset.weight_name().empty() && has_csv_column(eval, dataset.weight_name())) {
    eval.weight = dataset.weight_name();
  }
  if (eval.classes > 0) return;
  if (eval.target_kind == TargetKind::kNumbers || train->target_kind == TargetKind::kNumbers) return;
  eval.classes = dataset.classes();
  eval.class_names = dataset.class_names();
}

}  // namespace lockstep::data
