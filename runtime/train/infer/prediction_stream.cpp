// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/prediction_stream.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/train/infer/input_lines.h"

namespace lockstep::train {

namespace {

/// One path's predictions, or its failure.
std::vector<Prediction> predicted(Predictor& predictor, const std::string& path) {
  if (path.empty()) return {{.place = {path}, .numbers = {}, .error = "an empty line names no input"}};
  try {
    return predictor.predict(std::vector{path});
  } catch (const UsageError& error) {
    return {{.place = {path}, .numbers = {}, .error = error.what()}};
  } catch (const StorageError& error) {
    return {{.place = {path}, .numbers = {}, .error = error.what()}};
  }
}

std::vector<Prediction> predicted(Predictor& predictor, const std::vector<std::string>& paths) {
  try {
    return predictor.predict(paths);
  } catch (const UsageError&) {
  } catch (const StorageError&) {
  }
  std::vector<Prediction> all;
  for (const std::string& path : paths) {
    for (Prediction& prediction : predicted(predictor, path)) all.push_back(std::move(prediction));
  }
  return all;
}

/// Answers lines.
class Answering {
 public:
  explicit Answering(Predictor& predictor) : predictor_(predictor), takes_rows_(predictor.takes_lines()) {}

  std::vector<Prediction> answer(std::vector<std::string> lines) {
    if (!takes_rows_) return predicted(predictor_, lines);
    // The first line of all names the columns, or is a row as the others are: then it is not needed again.
    if (header_.empty() && predictor_.names_columns()) {
      header_ = lines.front() + "\n";
      lines.erase(lines.begin());
    }
    std::vector<Prediction> predictions = rows_of(lines);
    for (Prediction& prediction : predictions) prediction.place.row = rows_++;
    return predictions;
  }

 private:
  /// An answer a line.
  std::vector<Prediction> rows_of(const std::vector<std::string>& lines) {
    if (lines.empty()) return {};
    std::string text = header_;
    for (const std::string& line : lines) text += line + "\n";
    try {
      std::vector<Prediction> predictions = predictor_.predict_lines(std::move(text));
      // Blank lines have no row, and a quote may reach over lines.
      if (predictions.size() == lines.size()) return predictions;
    } catch (const StorageError& error) {
      if (lines.size() == 1) return {{.place = {"-"}, .numbers = {}, .error = error.what()}};
    } catch (const UsageError& error) {
      const auto is_blank = [](const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; };
      if (!std::ranges::all_of(lines, is_blank)) throw;
    }
    if (lines.size() == 1) return {{.place = {"-"}, .numbers = {}, .error = "the line is no row"}};
    std::vector<Prediction> all;
    for (const std::string& line : lines) {
      for (Prediction& prediction : rows_of({line})) all.push_back(std::move(prediction));
    }
    return all;
  }

  Predictor& predictor_;
  bool takes_rows_;
  std::string header_;
  std::int64_t rows_ = 0;
};

}  // namespace

StreamCounts predict_lines(Predictor& predictor, int input, PredictionLine line,
                           const std::function<void(std::string_view)>& emit) {
  emit(header_of(line));
  StreamCounts counts;
  InputLines lines(input);
  Answering answering(predictor);
  for (std::vector<std::string> found = lines.next(); !found.empty(); found = lines.next()) {
    std::string answer;
    for (const Prediction& prediction : answering.answer(std::move(found))) {
      ++counts.inputs;
      if (!prediction.error.empty()) {
        ++counts.failures;
        spdlog::warn("not read: {}", prediction.error);
      }
      answer += prediction.error.empty() ? line_of(line, prediction.place, prediction.numbers)
                                         : line_of_failure(line, prediction.place, prediction.error);
    }
    emit(answer);
  }
  return counts;
}

}  // namespace lockstep::train
