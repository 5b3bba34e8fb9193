// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/prompt_lines.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/data/formats/line_reader.h"
#include "runtime/data/inputs/inputs.h"
#include "runtime/train/infer/input_lines.h"

namespace lockstep::train {

namespace {

constexpr std::array<std::string_view, 2> kEndings{".txt", ".jsonl"};

std::string prompt_in(const std::string& line) {
  const nlohmann::json value = parse_json(line);
  if (value.is_string()) return value.get<std::string>();
  for (const char* const name : {"prompt", "text"}) {
    if (value.is_object() && value.contains(name) && value[name].is_string()) return value[name].get<std::string>();
  }
  throw StorageError("is no JSON object with a \"prompt\" or a \"text\"");
}

/// Answers one line after the other.
class Answerer {
 public:
  Answerer(Generator& generator, const GenerateOptions& options, TextFormat format,
           const std::function<void(std::string_view)>& emit)
      : generator_(generator), options_(options), format_(format), emit_(emit) {}

  void answer(const std::string& path, std::int64_t line, const std::string& content, bool is_json) {
    ++counts_.inputs;
    std::string text;
    options_.prompt.clear();
    try {
      options_.prompt = is_json ? prompt_in(content) : content;
      generator_.write(options_, [&text](std::string_view piece) { text += piece; });
      tell(path, line, text, {});
    } catch (const UsageError& error) {
      ++counts_.failures;
      tell(path, line, {}, error.what());
    } catch (const StorageError& error) {
      ++counts_.failures;
      tell(path, line, {}, error.what());
    }
  }
  const StreamCounts& counts() const { return counts_; }

 private:
  void tell(const std::string& path, std::int64_t line, const std::string& text,
            const std::optional<std::string>& error) {
    if (error) spdlog::warn("{}, line {}: {}", path, line, *error);
    if (format_ == TextFormat::kCsv) {
      return emit_(fmt::format("{},{},{}\n", csv_cell(path), line, csv_cell(text)));
    }
    nlohmann::ordered_json object{{"path", path}, {"line", line}, {"prompt", options_.prompt}};
    error ? object["error"] = *error : object["text"] = text;
    emit_(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  }

  Generator& generator_;
  GenerateOptions options_;
  TextFormat format_;
  const std::function<void(std::string_view)>& emit_;
  StreamCounts counts_;
};

}  // namespace

StreamCounts continue_lines(Generator& generator, const GenerateOptions& options, std::span<const std::string> paths,
                            TextFormat format, const std::function<void(std::string_view)>& emit) {
  Answerer answerer(generator, options, format, emit);
  const bool streams = paths.size() == 1 && paths.front() == "-";
  const std::vector<std::string> files = streams ? std::vector<std::string>() : data::input_files(paths, kEndings);
  if (format == TextFormat::kCsv) emit("path,line,text\n");
  if (streams) {
    InputLines lines(STDIN_FILENO);
    std::int64_t number = 0;
    for (std::vector<std::string> found = lines.next(); !found.empty(); found = lines.next()) {
      for (const std::string& line : found) answerer.answer("-", number++, line, false);
    }
  }
  for (const std::string& file : files) {
    data::LineReader reader(file);
    std::int64_t number = 0;
    while (const std::optional<std::string_view> line = reader.next()) {
      if (!line->empty()) answerer.answer(file, number, std::string(*line), file.ends_with(".jsonl"));
      ++number;
    }
  }
  return answerer.counts();
}

}  // namespace lockstep::train
