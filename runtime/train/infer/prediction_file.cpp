// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/prediction_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/train/prediction.h"

namespace lockstep::train {

namespace fs = std::filesystem;

namespace {

template <class Line>
void for_each_row(const Predictions& predictions, const Line& line) {
  const auto columns = static_cast<std::size_t>(predictions.shape.numel());
  for (std::size_t i = 0; (i + 1) * columns <= predictions.values.size(); ++i) {
    line(i, std::span<const float>(predictions.values).subspan(i * columns, columns));
  }
}

/// The name of class `number`; empty where it has none.
std::string_view name_of_class(const Predictions& predictions, std::int64_t number) {
  if (number < 0 || number >= std::ssize(predictions.class_names)) return {};
  return predictions.class_names[static_cast<std::size_t>(number)];
}

/// A cell of CSV, in quotes where RFC 4180 asks for them.
std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string cell = "\"";
  for (const char c : text) cell.append(c == '"' ? 2 : 1, c);
  return cell + '"';
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// fmt prints the shortest number that reads back as the same float.

std::string csv(const Predictions& predictions) {
  const bool classifies = predictions.kind == PredictionKind::kProbabilities;
  const bool named = classifies && !predictions.class_names.empty();
  std::string text = named ? "sample,class,name" : classifies ? "sample,class" : "sample";
  for (std::int64_t c = 0; c < predictions.shape.numel(); ++c) {
    fmt::format_to(std::back_inserter(text), ",{}{}", classifies ? "p" : "v", c);
  }
  text += '\n';
  for_each_row(predictions, [&](std::size_t sample, std::span<const float> row) {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{}", sample);
    if (classifies) fmt::format_to(out, ",{}", class_of(row));
    if (named) fmt::format_to(out, ",{}", csv_cell(name_of_class(predictions, class_of(row))));
    for (const float value : row) fmt::format_to(out, ",{}", value);
    text += '\n';
  });
  return text;
}

std::string json_lines(const Predictions& predictions) {
  const bool classifies = predictions.kind == PredictionKind::kProbabilities;
  const bool named = classifies && !predictions.class_names.empty();
  std::string text;
  for_each_row(predictions, [&](std::size_t sample, std::span<const float> row) {
    const auto out = std::back_inserter(text);
    fmt::format_to(out, "{{\"sample\":{}", sample);
    if (classifies) fmt::format_to(out, ",\"class\":{}", class_of(row));
    if (named) fmt::format_to(out, ",\"name\":{}", json_string(name_of_class(predictions, class_of(row))));
    text += classifies ? ",\"probabilities\":[" : ",\"values\":[";
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) text += ',';
      // JSON has no NaN and no infinity.
      if (std::isfinite(row[c])) {
        fmt::format_to(out, "{}", row[c]);
      } else {
        text += "null";
      }
    }
    text += "]}\n";
  });
  return text;
}

template <class T>
void append(std::string& bytes, std::span<const T> values) {
  const std::size_t at = bytes.size();
  bytes.resize(at + values.size_bytes());
  std::memcpy(bytes.data() + at, values.data(), values.size_bytes());
}

/// Version 1.0 of NumPy's format: magic, length of the header, header padded so that the data are aligned to 64 bytes.
std::string npy(const Predictions& predictions) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::size_t kPrefix = 10;
  const auto numbers = static_cast<std::size_t>(predictions.shape.numel());
  const bool classes = predictions.kind == PredictionKind::kClasses;
  std::string shape = std::to_string(numbers == 0 ? 0 : predictions.values.size() / numbers);
  for (const std::int64_t extent : predictions.shape.extents()) shape += ", " + std::to_string(extent);
  if (predictions.shape.rank() == 0) shape += ",";
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", classes ? "<i8" : "<f4", shape);
  header.append(63 - (kPrefix + header.size()) % 64, ' ');
  header += '\n';
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  if (!classes) {
    append(bytes, std::span<const float>(predictions.values));
    return bytes;
  }
  std::vector<std::int64_t> labels;
  for (const float value : predictions.values) labels.push_back(static_cast<std::int64_t>(value));
  append(bytes, std::span<const std::int64_t>(labels));
  return bytes;
}

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw StorageError("cannot write " + path.string() + ": " + reason,
                     "Check the space and the permissions there, or choose another --out.");
}

}  // namespace

void require_prediction_format(const fs::path& path) {
  const fs::path extension = path.extension();
  if (extension == ".csv" || extension == ".jsonl" || extension == ".npy") return;
  throw UsageError("--out " + path.string() + ": the name must end in .csv, .jsonl or .npy",
                   "The end of the name chooses the format.");
}

void require_prediction_shape(const fs::path& path, const Shape& shape) {
  if (shape.rank() <= 1 || path.extension() == ".npy") return;
  throw UsageError("--out " + path.string() + ": answers of shape " + shape.str() + " have no place in a row of text",
                   "Choose a name that ends in .npy.");
}

void require_writable(const fs::path& path) {
  if (fs::is_directory(path)) refuse(path, "it is a directory");
  fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) refuse(path, error.message());
  if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse(path, std::generic_category().message(errno));
}

void write_predictions(const fs::path& path, const Predictions& predictions) {
  require_prediction_format(path);
  require_prediction_shape(path, predictions.shape);
  const fs::path extension = path.extension();
  const std::string content = extension == ".csv"     ? csv(predictions)
                              : extension == ".jsonl" ? json_lines(predictions)
                                                      : npy(predictions);
  if (const std::error_code error = write_whole_file(path, content)) refuse(path, error.message());
}

}  // namespace lockstep::train
