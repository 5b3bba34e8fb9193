// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/svmlight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "runtime/base/error.h"
#include "runtime/base/option_checks.h"
#include "runtime/data/class_column.h"
#include "runtime/data/formats/line_reader.h"
#include "runtime/data/formats/sparse_row.h"

namespace lockstep::data {

namespace {

constexpr std::size_t kMostFoundClasses = 100;

float target_in(std::string_view word, const LineReader& reader) {
  const std::optional<float> target = number_in_text(word);
  if (target) return *target;
  if (word.empty()) reader.refuse("expected a number as the target before INDEX:VALUE");
  if (word.find(',') != std::string_view::npos) {
    reader.refuse(fmt::format("\"{}\" is several targets, and a sample has one", word));
  }
  reader.refuse(fmt::format("expected a number as the target, found \"{}\"", word));
}

/// The next line that is a sample, whose target is `target`; false where there is none.
bool next_row(LineReader& reader, SparseRow& row, float& target) {
  while (std::optional<std::string_view> line = reader.next()) {
    if (!read_sparse_row(*line, reader, row)) continue;
    target = target_in(row.target, reader);
    return true;
  }
  return false;
}

}  // namespace

FieldProblems problems_of(const SvmlightOptions& options) {
  FieldChecks checks;
  check_fields(options, checks);
  if (options.features > kMostSparseFeatures) {
    checks.error("features", fmt::format("must be at most {}, is {}", kMostSparseFeatures, options.features));
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
  std::vector<SparseEntry> entries;  // of all rows, counted from 0
  std::vector<std::size_t> ends;
  ClassColumn classes;
  rows_.columns = options.features;
  for (const std::string& file : options.files) {
    LineReader reader(file);
    float target = 0;
    for (SparseRow row; next_row(reader, row, target);) {
      budget.take(row.entries.size() * sizeof(SparseEntry) + sizeof(std::size_t) + sizeof(std::int64_t), file, kAdvice);
      for (const SparseEntry& entry : row.entries) {
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
        rows_.numbers.push_back(target);
      } else if (!classes.add(fmt::format("{}", target), reader.where())) {
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
    float target = 0;
    for (SparseRow row; next_row(reader, row, target);) {
      if (targets.size() <= kMostFoundClasses) targets.insert(target);
      options.zero_based = options.zero_based || (!row.entries.empty() && row.entries[0].index == 0);
    }
  }
  const bool whole = std::ranges::all_of(targets, [](float target) { return std::floor(target) == target; });
  if (!whole || targets.size() > kMostFoundClasses) options.target_kind = TargetKind::kNumbers;
  return options;
}

}  // namespace lockstep::data
