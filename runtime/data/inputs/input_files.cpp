// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "runtime/base/error.h"
#include "runtime/data/formats/walk.h"
#include "runtime/data/inputs/inputs.h"

namespace lockstep::data {

namespace fs = std::filesystem;

namespace {

bool ends_in(const fs::path& path, std::span<const std::string_view> endings) {
  std::string name = path.filename().string();
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(endings, [&name](std::string_view ending) { return name.ends_with(ending); });
}

std::vector<std::string> files_below(const std::string& folder, std::span<const std::string_view> endings) {
  std::vector<std::string> files;
  std::size_t others = 0;
  try {
    walk({folder}, [&](const fs::directory_entry& entry) {
      if (!entry.is_regular_file()) return;
      if (!ends_in(entry.path(), endings)) return void(++others);
      files.push_back(entry.path().string());
    });
  } catch (const fs::filesystem_error& error) {
    throw StorageError("cannot list " + folder + ": " + error.what());
  }
  if (files.empty()) {
    throw UsageError(fmt::format("--input {}: the folder holds no file {}", folder, fmt::join(endings, ", ")));
  }
  if (others > 0) {
    spdlog::warn("{}: {} files do not end in {}: they are passed over", folder, others, fmt::join(endings, ", "));
  }
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<std::string> input_files(std::span<const std::string> paths, std::span<const std::string_view> endings) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    const fs::file_status status = fs::status(path);
    if (fs::is_directory(status)) {
      std::ranges::move(files_below(path, endings), std::back_inserter(files));
      continue;
    }
    if (!fs::exists(status)) throw UsageError("--input " + path + ": there is no such file or folder");
    if (!ends_in(path, endings)) {
      throw UsageError(fmt::format("--input {}: the run takes files that end in {}", path, fmt::join(endings, ", ")));
    }
    files.push_back(path);
  }
  return files;
}

}  // namespace lockstep::data
