// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/svmlight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/class_column.h"
#include "runtime/data/formats/line_reader.h"

namespace lockstep::data {

namespace {

constexpr std::int64_t kMostFeatures = 1 << 24;
constexpr std::size_t kMostFoundClasses = 100;
constexpr std::string_view kBlanks = " \t\v\f";

/// A value of a row; the index is as the file has it.
struct Entry {
  std::int64_t index = 0;
  float value = 0;
};

struct Row {
  float target = 0;
  std::vector<Entry> entries;
};

/// The text up to the next blank, which is taken off `rest`; empty at its end.
std::string_view next_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(kBlanks));
  rest.remove_prefix(word.size());
  return word;
}

float target_in(std::string_view word, const LineReader& reader) {
  const std::optional<float> target = number_in_text(word);
  if (target) return *target;
  if (word.find(',') != std::string_view::npos) {
    reader.refuse(fmt::format("\"{}\" is several targets, and a sample has one", word));
  }
  reader.refuse(fmt::format("expected a number as the target, found \"{}\"", word));
}

Entry entry_in(std::string_view word, const LineReader& reader) {
  const std::size_t colon = word.find(':');
  const std::string_view index = word.substr(0, colon);
  if (index == "qid") {
    reader.refuse(fmt::format("\"{}\" makes it a ranking, which cannot be learned", word),
                  "Take the qid out to learn the targets by themselves.");
  }
  Entry entry;
  const auto [end, failure] = std::from_chars(index.data(), index.data() + index.size(), entry.index);
  const bool is_index = failure == std::errc() && end == index.data() + index.size() && entry.index >= 0;
  const std::optional<float> value =
      colon == std::string_view::npos ? std::nullopt : number_in_text(word.substr(colon + 1));
  if (!is_index || !value) reader.refuse(fmt::format("expected INDEX:VALUE, found \"{}\"", word));
  if (entry.index >= kMostFeatures) {
    reader.refuse(fmt::format("index {}: {} is the most", entry.index, kMostFeatures - 1));
  }
  entry.value = *value;
  return entry;
}

/// The next line that is a sample; false where there is none.
bool next_row(LineReader& reader, Row& row) {
  while (std::optional<std::string_view> line = reader.next()) {
    std::string_view rest = line->substr(0, line->find('#'));
    const std::string_view target = next_word(rest);
    if (target.empty()) continue;
    row.target = target_in(target, reader);
    row.entries.clear();
    for (std::string_view word = next_word(rest); !word.empty(); word = next_word(rest)) {
      const Entry entry = entry_in(word, reader);
      if (!row.entries.empty() && entry.index <= row.entries.back().index) {
        reader.refuse(fmt::format("index {} comes behind index {}", entry.index, row.entries.back().index),
                      "Sort the indices of a line; each comes once.");
      }
      row.entries.push_back(entry);
    }
    return true;
  }
  return false;
}

}  // namespace

FieldProblems problems_of(const SvmlightOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (options.features > kMostFeatures) {
    checks.error("features", fmt::format("must be at most {}, is {}", kMostFeatures, options.features));
  }
  if (options.target_kind == TargetKind::kNumbers && options.classes > 0) {
    checks.error("classes", "must be absent where targets are NUMBERS", {"target_kind"});
  }
  return checks.problems();
}

SvmlightDataset::SvmlightDataset(const SvmlightOptions& options, MemoryBudget budget) {
  require_none(problems_of(options), "svmlight");
  const bool numbers = options.target_kind == TargetKind::kNumbers;
  const std::int64_t first = options.zero_based ? 0 : 1;
  constexpr const char* kAdvice = "Rows are held with all their features: leave some out.";
  std::vector<Entry> entries;  // of all rows, counted from 0
  std::vector<std::size_t> ends;
  ClassColumn classes;
  rows_.columns = options.features;
  for (const std::string& file : options.files) {
    LineReader reader(file);
    for (Row row; next_row(reader, row);) {
      budget.take(row.entries.size() * sizeof(Entry) + sizeof(std::size_t) + sizeof(std::int64_t), file, kAdvice);
      for (const Entry& entry : row.entries) {
        const std::int64_t column = entry.index - first;
        if (column < 0) reader.refuse("index 0, and indices begin at 1", "Say zero_based: true where they begin at 0.");
        if (options.features > 0 && column >= options.features) {
          reader.refuse(fmt::format("index {} is beyond the {} features", entry.index, options.features));
        }
        entries.push_back({column, entry.value});
        if (options.features == 0) rows_.columns = std::max(rows_.columns, column + 1);
      }
      ends.push_back(entries.size());
      if (numbers) {
        rows_.numbers.push_back(row.target);
      } else if (!classes.add(fmt::format("{}", row.target), reader.where())) {
        reader.refuse("too many different targets for classes", "Say target_kind: NUMBERS to learn numbers.");
      }
    }
  }
  if (ends.empty()) throw StorageError(fmt::format("{}: holds no samples", fmt::join(options.files, ", ")));
  if (rows_.columns == 0)
    throw StorageError(fmt::format("{}: no sample has a feature", fmt::join(options.files, ", ")));
  rows_.count = std::ssize(ends);
  const std::uint64_t values = static_cast<std::uint64_t>(rows_.count) * static_cast<std::uint64_t>(rows_.columns);
  budget.take(values * sizeof(float), options.files[0], kAdvice);
  rows_.features.resize(values);
  std::size_t entry = 0;
  for (std::int64_t row = 0; row < rows_.count; ++row) {
    for (; entry < ends[static_cast<std::size_t>(row)]; ++entry) {
      rows_.features[static_cast<std::size_t>(row * rows_.columns + entries[entry].index)] = entries[entry].value;
    }
  }
  if (numbers) return;
  ClassColumn::Classes found = classes.finish(options.class_names, options.classes);
  rows_.classes = found.count;
  rows_.class_names = std::move(found.names);
  rows_.labels = std::move(found.labels);
}

std::vector<std::string> SvmlightKind::class_names(const Options& options) {
  if (options.target_kind == TargetKind::kNumbers || !options.class_names.empty()) return options.class_names;
  return SvmlightDataset(options).class_names();
}

void SvmlightKind::become_eval(Options& eval, const Options* train) {
  if (train == nullptr) return;
  const bool takes_classes = eval.classes == 0 && has_classes(eval) && has_classes(*train);
  if (eval.features > 0 && !takes_classes) return;
  Options known = *train;
  if (known.features == 0 || (takes_classes && known.classes == 0)) {
    Preparation preparation;
    const SvmlightDataset dataset(*train);
    preparation.trained = data::describe(dataset);
    dataset.add_to_preparation(preparation);
    take_preparation(known, preparation);
  }
  if (eval.features == 0) eval.features = known.features;
  if (!takes_classes) return;
  eval.classes = known.classes;
  eval.class_names = known.class_names;
}

void SvmlightKind::take_preparation(Options& train, const Preparation& preparation) {
  if (train.features == 0) train.features = preparation.trained.sample_shape[0];
  if (train.class_names.empty()) train.class_names = preparation.class_names;
  if (train.classes == 0) train.classes = preparation.trained.classes;
}

SvmlightOptions SvmlightKind::found(const std::vector<std::string>& files) {
  Options options{.files = files};
  std::set<float> targets;
  for (const std::string& file : files) {
    LineReader reader(file);
    for (Row row; next_row(reader, row);) {
      if (targets.size() <= kMostFoundClasses) targets.insert(row.target);
      options.zero_based = options.zero_based || (!row.entries.empty() && row.entries[0].index == 0);
    }
  }
  const bool whole = std::ranges::all_of(targets, [](float target) { return std::floor(target) == target; });
  if (!whole || targets.size() > kMostFoundClasses) options.target_kind = TargetKind::kNumbers;
  return options;
}

}  // namespace lockstep::data
