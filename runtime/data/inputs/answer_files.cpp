// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/answer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "runtime/base/error.h"
#include "runtime/data/formats/content_hash.h"
#include "runtime/data/inputs/inputs.h"

namespace lockstep::data {

namespace fs = std::filesystem;

namespace {

/// The path with this ending in place of the one of `endings` that it has.
std::string with_ending(std::string path, std::span<const std::string_view> endings, std::string_view ending) {
  std::string lower = path;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const std::string_view own : endings) {
    if (!lower.ends_with(own)) continue;
    path.resize(path.size() - own.size());
    return path.append(ending.empty() ? own : ending);
  }
  return path;
}

/// The file itself, whatever links lead to it.
std::string place_of(const std::string& path) {
  std::error_code error;
  const fs::path place = fs::weakly_canonical(path, error);
  return error ? path : place.string();
}

void require_apart(const std::vector<AnswerFile>& files) {
  std::map<std::string, std::string> answered;
  std::set<std::string> inputs;
  for (const AnswerFile& file : files) inputs.insert(place_of(file.input));
  for (const AnswerFile& file : files) {
    const auto [other, is_new] = answered.emplace(file.answer, file.input);
    if (!is_new) {
      throw UsageError(
          fmt::format("--input: the answers to {} and {} would both be {}", other->second, file.input, file.answer),
          "Answers have the names of their inputs, below a folder their paths: name the folder above both, or call the "
          "command for each.");
    }
    if (!inputs.contains(place_of(file.answer))) continue;
    throw UsageError(fmt::format("--out: the answer to {} would overwrite the input {}", file.input, file.answer),
                     "Choose another folder.");
  }
}

}  // namespace

std::vector<AnswerFile> answer_files(std::span<const std::string> paths, std::span<const std::string_view> endings,
                                     const std::string& folder, std::string_view ending) {
  std::vector<AnswerFile> files;
  for (const std::string& path : paths) {
    const bool is_folder = fs::is_directory(path);
    for (const std::string& input : input_files(std::span(&path, 1), endings)) {
      const fs::path name = is_folder ? fs::path(input).lexically_relative(path) : fs::path(input).filename();
      files.push_back({input, (fs::path(folder) / with_ending(name.string(), endings, ending)).string()});
    }
  }
  require_apart(files);
  return files;
}

DataDigest digest_of(const std::vector<AnswerFile>& files) {
  std::vector<std::string> inputs;
  Hash128 names, content;
  for (const AnswerFile& file : files) {
    inputs.push_back(file.input);
    names.update(file.answer + '\n');
  }
  add_files(inputs, content);
  return {"--input", fmt::format("{} files", files.size()), names.hex(), content.hex()};
}

}  // namespace lockstep::data
