// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/run_attachments.h"

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/json_text.h"
#include "runtime/train/history/metrics_lines.h"

namespace lockstep::train {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr std::size_t kMostPictures = 24;
constexpr std::size_t kMostPictureBytes = std::size_t{256} << 10;
constexpr std::size_t kMostTexts = 40;
constexpr std::size_t kMostConfusionBytes = std::size_t{4} << 20;
constexpr std::int64_t kMostClasses = 200;

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    unsigned bits = 0;
    for (std::size_t i = at; i < at + 3; ++i) {
      bits = bits << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0U);
    }
    for (int shift = 18; shift >= 0; shift -= 6) text += kDigits[bits >> shift & 63U];
  }
  if (bytes.size() % 3 > 0)
    text.replace(text.size() - (3 - bytes.size() % 3), std::string::npos, bytes.size() % 3 == 1 ? "==" : "=");
  return text;
}

/// Whether it is a square of whole numbers, with as many classes as it says.
bool is_confusion(const Json& json) {
  const Json& classes = field_of(json, "classes");
  const Json& matrix = field_of(json, "matrix");
  if (!classes.is_number_integer() || classes.get<std::int64_t>() > kMostClasses || !matrix.is_array()) return false;
  const auto count = static_cast<std::size_t>(classes.get<std::int64_t>());
  if (matrix.size() != count) return false;
  for (const Json& row : matrix) {
    if (!row.is_array() || row.size() != count) return false;
    for (const Json& cell : row) {
      if (!cell.is_number_integer()) return false;
    }
  }
  return true;
}

}  // namespace

Json confusion_of(const fs::path& run) {
  try {
    Json json = parse_ordered_json(read_file((run / "confusion.json").string(), kMostConfusionBytes));
    if (is_confusion(json)) return json;
  } catch (const StorageError&) {
    // A run that was never evaluated so has none.
  }
  return nullptr;
}

Json pictures_of(const fs::path& run) {
  Json pictures = Json::array();
  const fs::path folder = run / "pictures";
  try {
    for (const std::string& name : list_directory(folder.string())) {
      if (pictures.size() == kMostPictures) break;
      if (!name.ends_with(".png")) continue;
      const InputFile file((folder / name).string());
      if (file.size() > kMostPictureBytes) continue;
      pictures.push_back({{"name", name}, {"png", base64(read_file(file, kMostPictureBytes))}});
    }
  } catch (const StorageError&) {
    // Those before it are shown.
  }
  return pictures;
}

Json texts_of(const fs::path& run) {
  Json texts = Json::array();
  try {
    for_each_line(run / "texts.jsonl", [&](std::string_view text) {
      const Json line = parse_ordered_json(text);
      const Json& prompt = field_of(line, "prompt");
      const Json& answer = field_of(line, "text");
      if (prompt.is_string() && answer.is_string()) texts.push_back({{"prompt", prompt}, {"text", answer}});
      return texts.size() < kMostTexts;
    });
  } catch (const StorageError&) {
    // A run that wrote no texts has none.
  }
  return texts;
}

}  // namespace lockstep::train
