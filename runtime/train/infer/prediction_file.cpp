// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/prediction_file.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <span>
#include <string>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"
#include "runtime/data/formats/npy_writer.h"

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

PredictionLine line_for(const Predictions& predictions, TextFormat format) {
  return {.format = format,
          .kind = predictions.kind,
          .numbers = predictions.shape.numel(),
          .class_names = predictions.class_names,
          .top = predictions.top,
          .of_inputs = predictions.inputs != nullptr,
          .row_title = predictions.inputs ? std::string(predictions.inputs->row_title()) : ""};
}

template <class T>
void append(std::string& bytes, std::span<const T> values) {
  const std::size_t at = bytes.size();
  bytes.resize(at + values.size_bytes());
  std::memcpy(bytes.data() + at, values.data(), values.size_bytes());
}

std::string npy(const Predictions& predictions) {
  static_assert(std::endian::native == std::endian::little);
  const auto numbers = static_cast<std::size_t>(predictions.shape.numel());
  const bool classes = predictions.kind == PredictionKind::kClasses;
  std::vector<std::int64_t> extents{numbers == 0 ? 0 : static_cast<std::int64_t>(predictions.values.size() / numbers)};
  std::ranges::copy(predictions.shape.extents(), std::back_inserter(extents));
  std::string bytes = data::npy_header(classes ? "<i8" : "<f4", extents);
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

std::string text_of(const Predictions& predictions, TextFormat format) {
  const PredictionLine line = line_for(predictions, format);
  std::string text = header_of(line);
  for_each_row(predictions, [&](std::size_t i, std::span<const float> row) {
    const auto sample = static_cast<std::int64_t>(i);
    const auto failure = predictions.failures.find(sample);
    const auto line_at = [&](const auto& place) {
      return failure == predictions.failures.end() ? line_of(line, place, row)
                                                   : line_of_failure(line, place, failure->second);
    };
    text += predictions.inputs ? line_at(predictions.inputs->place(sample)) : line_at(sample);
  });
  return text;
}

void require_prediction_format(const fs::path& path) {
  const fs::path extension = path.extension();
  if (extension == ".csv" || extension == ".jsonl" || extension == ".npy") return;
  throw UsageError("--out " + path.string() + ": the name must end in .csv, .jsonl or .npy",
                   "The end of the name chooses the format. A folder is for runs that answer with volumes or images.");
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
  const std::string content =
      path.extension() == ".npy"
          ? npy(predictions)
          : text_of(predictions, path.extension() == ".csv" ? TextFormat::kCsv : TextFormat::kJsonLines);
  if (const std::error_code error = write_whole_file(path, content)) refuse(path, error.message());
}

}  // namespace lockstep::train
