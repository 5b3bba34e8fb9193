// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::draft {

/// What a file holds, as its name and first bytes tell.
enum class Format { kIdxImages, kIdxLabels, kCifar10, kCifar100, kArray, kTable, kTokens, kText };

/// What a file or folder is for, as its name tells: 0 for training, else the place in the order in which a name is
/// preferred for evaluation: val, valid, validation, eval, dev, test, t10k.
int evaluation_rank(const std::filesystem::path& path);

struct FoundFile {
  std::string path;
  Format format = Format::kText;
  int evaluation_rank = 0;
};

/// None for what is no data that a job can name. In a folder a text is *.txt; a file that the user names may end in
/// anything. Throws StorageError where it cannot be read.
std::optional<FoundFile> look_at_file(const std::filesystem::path& path, bool named_by_user);

/// Paths of one format, by what they are for.
struct Split {
  std::vector<std::string> train;
  std::vector<std::string> eval;  ///< of the preferred name alone: val rather than test
};
Split split(const std::vector<FoundFile>& files, Format format);

/// *.jpg, *.jpeg and *.png, in any case.
bool is_image(const std::filesystem::path& path);

}  // namespace lockstep::draft
