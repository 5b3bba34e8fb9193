// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/prediction_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>

#include "runtime/train/prediction.h"

namespace lockstep::train {

namespace {

bool classifies(const PredictionLine& line) { return line.kind == PredictionKind::kProbabilities; }
bool is_named(const PredictionLine& line) { return classifies(line) && !line.class_names.empty(); }

/// How many of the classes a line tells.
std::int64_t shown(const PredictionLine& line) { return std::min(line.top, line.numbers); }

/// The name of class `number`; empty where it has none.
std::string_view name_of_class(const PredictionLine& line, std::int64_t number) {
  if (number < 0 || number >= std::ssize(line.class_names)) return {};
  return line.class_names[static_cast<std::size_t>(number)];
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// JSON has no NaN and no infinity.
std::string json_number(float value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

/// The most probable classes, the first of equal ones first; all -1 where there is a NaN.
std::vector<std::int64_t> top_classes(const PredictionLine& line, std::span<const float> numbers) {
  std::vector<std::int64_t> classes(numbers.size());
  std::iota(classes.begin(), classes.end(), 0);
  if (class_of(numbers) < 0 || std::ranges::any_of(numbers, [](float p) { return std::isnan(p); })) {
    std::ranges::fill(classes, -1);
  } else {
    std::ranges::stable_sort(classes, std::greater(),
                             [&](std::int64_t c) { return numbers[static_cast<std::size_t>(c)]; });
  }
  classes.resize(static_cast<std::size_t>(shown(line)));
  return classes;
}

float probability_of(std::int64_t number, std::span<const float> numbers) {
  return number < 0 ? std::nanf("") : numbers[static_cast<std::size_t>(number)];
}

std::string csv_columns(const PredictionLine& line) {
  std::string text;
  const auto out = std::back_inserter(text);
  if (classifies(line) && line.top > 0) {
    for (std::int64_t i = 1; i <= shown(line); ++i) {
      const std::string suffix = i == 1 ? "" : std::to_string(i);
      fmt::format_to(out, ",class{}", suffix);
      if (is_named(line)) fmt::format_to(out, ",name{}", suffix);
      fmt::format_to(out, ",probability{}", suffix);
    }
    return text;
  }
  if (classifies(line)) text += is_named(line) ? ",class,name" : ",class";
  const bool one = line.of_inputs && line.numbers == 1;
  const char* const title = classifies(line) ? "p" : line.of_inputs ? "prediction" : "v";
  for (std::int64_t c = 0; c < line.numbers; ++c) {
    one && !classifies(line) ? fmt::format_to(out, ",{}", title) : fmt::format_to(out, ",{}{}", title, c);
  }
  return text;
}

std::string csv_cells(const PredictionLine& line, std::span<const float> numbers) {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto add_class = [&](std::int64_t number) {
    fmt::format_to(out, ",{}", number);
    if (is_named(line)) fmt::format_to(out, ",{}", csv_cell(name_of_class(line, number)));
  };
  if (classifies(line) && line.top > 0) {
    for (const std::int64_t number : top_classes(line, numbers)) {
      add_class(number);
      fmt::format_to(out, ",{}", probability_of(number, numbers));
    }
    return text;
  }
  if (classifies(line)) add_class(class_of(numbers));
  for (const float value : numbers) fmt::format_to(out, ",{}", value);
  return text;
}

/// Members behind the first one, each with a comma before it.
std::string json_members(const PredictionLine& line, std::span<const float> numbers) {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto class_and_name = [&](std::int64_t number) {
    std::string members = fmt::format("\"class\":{}", number);
    if (is_named(line)) members += ",\"name\":" + json_string(name_of_class(line, number));
    return members;
  };
  const auto list = [&](const char* name) {
    fmt::format_to(out, ",\"{}\":[", name);
    for (std::size_t c = 0; c < numbers.size(); ++c) text += (c > 0 ? "," : "") + json_number(numbers[c]);
    text += ']';
  };
  if (classifies(line) && line.top > 0) {
    text += ",\"top\":[";
    const char* separator = "";
    for (const std::int64_t number : top_classes(line, numbers)) {
      fmt::format_to(out, "{}{{{},\"probability\":{}}}", separator, class_and_name(number),
                     json_number(probability_of(number, numbers)));
      separator = ",";
    }
    text += ']';
  } else if (classifies(line)) {
    text += ',' + class_and_name(class_of(numbers));
    list("probabilities");
  } else if (line.of_inputs && numbers.size() == 1) {
    fmt::format_to(out, ",\"prediction\":{}", json_number(numbers[0]));
  } else {
    list(line.of_inputs ? "prediction" : "values");
  }
  return text;
}

std::string csv_place(const PredictionLine&, std::int64_t sample) { return std::to_string(sample); }

std::string csv_place(const PredictionLine& line, const data::InputPlace& place) {
  return csv_cell(place.path) + (line.row_title.empty() ? "" : fmt::format(",{}", place.row));
}

std::string json_place(const PredictionLine&, std::int64_t sample) { return fmt::format("\"sample\":{}", sample); }

std::string json_place(const PredictionLine& line, const data::InputPlace& place) {
  std::string text = "\"path\":" + json_string(place.path);
  if (!line.row_title.empty()) text += fmt::format(",\"{}\":{}", line.row_title, place.row);
  return text;
}

/// `place`: the number of a sample, or the place of an input.
std::string line_at(const PredictionLine& line, const auto& place, std::span<const float> numbers) {
  if (line.format == TextFormat::kCsv) return csv_place(line, place) + csv_cells(line, numbers) + '\n';
  return fmt::format("{{{}{}}}\n", json_place(line, place), json_members(line, numbers));
}

std::string failure_at(const PredictionLine& line, const auto& place, std::string_view error) {
  if (line.format != TextFormat::kCsv) {
    return fmt::format("{{{},\"error\":{}}}\n", json_place(line, place), json_string(error));
  }
  const std::string columns = csv_columns(line);
  return csv_place(line, place) + std::string(static_cast<std::size_t>(std::ranges::count(columns, ',')), ',') + '\n';
}

}  // namespace

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) cell.append(c == '"' ? 2 : 1, c);
  return cell + '"';
}

std::string header_of(const PredictionLine& line) {
  if (line.format != TextFormat::kCsv) return {};
  const std::string place = line.row_title.empty() ? "path" : "path," + line.row_title;
  return (line.of_inputs ? place : "sample") + csv_columns(line) + '\n';
}

std::string line_of(const PredictionLine& line, std::int64_t sample, std::span<const float> numbers) {
  return line_at(line, sample, numbers);
}

std::string line_of(const PredictionLine& line, const data::InputPlace& place, std::span<const float> numbers) {
  return line_at(line, place, numbers);
}

std::string line_of_failure(const PredictionLine& line, std::int64_t sample, std::string_view error) {
  return failure_at(line, sample, error);
}

std::string line_of_failure(const PredictionLine& line, const data::InputPlace& place, std::string_view error) {
  return failure_at(line, place, error);
}

}  // namespace lockstep::train
