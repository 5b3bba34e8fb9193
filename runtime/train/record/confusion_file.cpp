// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/confusion_file.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/base/files/whole_file.h"

namespace lockstep::train {

namespace {

/// The counts of a class as target and as answer.
struct ClassCounts {
  std::int64_t samples = 0;
  std::int64_t answers = 0;
  std::int64_t correct = 0;
};

ClassCounts counts_of(const ConfusionMatrix& confusion, std::int64_t c) {
  ClassCounts counts{.correct = confusion.count(c, c)};
  for (std::int64_t other = 0; other < confusion.classes; ++other) {
    counts.samples += confusion.count(c, other);
    counts.answers += confusion.count(other, c);
  }
  return counts;
}

std::string json(const ConfusionMatrix& confusion, const std::vector<std::string>& names) {
  using Json = nlohmann::ordered_json;
  const auto share = [](std::int64_t part, std::int64_t whole) {
    return whole > 0 ? Json(static_cast<double>(part) / static_cast<double>(whole)) : Json(nullptr);
  };
  Json matrix = Json::array();
  Json per_class = Json::array();
  for (std::int64_t c = 0; c < confusion.classes; ++c) {
    Json row = Json::array();
    for (std::int64_t answer = 0; answer < confusion.classes; ++answer) row.push_back(confusion.count(c, answer));
    matrix.push_back(row);
    const ClassCounts counts = counts_of(confusion, c);
    per_class.push_back({{"class", c},
                         {"samples", counts.samples},
                         {"accuracy", share(counts.correct, counts.samples)},
                         {"precision", share(counts.correct, counts.answers)}});
  }
  Json json{{"classes", confusion.classes}};
  if (!names.empty()) json["names"] = names;
  json["matrix"] = matrix;
  json["per_class"] = per_class;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

/// White for nothing, blue for all.
std::string color_of(double share) {
  const auto mix = [share](int all) { return static_cast<int>(255 + share * (all - 255) + 0.5); };
  return fmt::format("#{:02x}{:02x}{:02x}", mix(8), mix(48), mix(107));
}

std::string svg(const ConfusionMatrix& confusion) {
  // Numbers are written where there is room to read them.
  const std::int64_t classes = confusion.classes;
  const bool numbered = classes <= 40;
  const std::int64_t side = numbered ? 40 : 1 + 800 / classes;
  const std::int64_t margin = 60;
  const std::int64_t extent = margin + side * classes + 20;
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{0}\" font-family=\"sans-serif\" "
      "font-size=\"12\" text-anchor=\"middle\">\n<rect width=\"{0}\" height=\"{0}\" fill=\"#ffffff\"/>\n"
      "<text x=\"{1}\" y=\"20\">answer</text>\n<text transform=\"translate(20 {1}) rotate(-90)\">target</text>\n",
      extent, margin + side * classes / 2);
  const auto out = std::back_inserter(text);
  for (std::int64_t c = 0; c < classes; ++c) {
    const std::int64_t middle = margin + c * side + side / 2;
    if (numbered) {
      fmt::format_to(out, "<text x=\"{0}\" y=\"{1}\">{2}</text>\n<text x=\"{1}\" y=\"{3}\">{2}</text>\n", middle,
                     margin - 12, c, middle + 4);
    }
    const auto samples = static_cast<double>(counts_of(confusion, c).samples);
    for (std::int64_t answer = 0; answer < classes; ++answer) {
      const std::int64_t count = confusion.count(c, answer);
      if (count == 0) continue;
      const double share = static_cast<double>(count) / samples;
      const std::int64_t x = margin + answer * side;
      fmt::format_to(out, "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"/>\n", x, margin + c * side,
                     side, side, color_of(share));
      if (!numbered) continue;
      fmt::format_to(out, "<text x=\"{}\" y=\"{}\" fill=\"{}\">{}</text>\n", x + side / 2, middle + 4,
                     share > 0.5 ? "#ffffff" : "#000000", count);
    }
  }
  fmt::format_to(out,
                 "<rect x=\"{0}\" y=\"{0}\" width=\"{1}\" height=\"{1}\" fill=\"none\" stroke=\"#888888\"/>\n</svg>\n",
                 margin, side * classes);
  return text;
}

}  // namespace

void require_confusion_format(const std::filesystem::path& path) {
  if (path.extension() == ".json" || path.extension() == ".svg") return;
  throw UsageError("--confusion " + path.string() + ": the name must end in .json or .svg",
                   "The end of the name chooses the format.");
}

void write_confusion(const std::filesystem::path& path, const ConfusionMatrix& confusion,
                     const std::vector<std::string>& names) {
  require_confusion_format(path);
  const std::string content = path.extension() == ".json" ? json(confusion, names) : svg(confusion);
  if (const std::error_code error = write_whole_file(path, content)) {
    throw StorageError("cannot write " + path.string() + ": " + error.message(),
                       "Check the space and the permissions there, or choose another --confusion.");
  }
}

}  // namespace lockstep::train
