// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::init {

/// The kind of a file's content, as its name and first bytes tell.
enum class Format {
  kIdxImages,
  kIdxLabels,
  kCifar10,
  kCifar100,
  kArray,
  kTable,
  kTokens,
  kText,
  kTar,
  kVocabulary,
  kMerges,
  kTokenizer,  ///< of Hugging Face or SentencePiece
  kByEnding    ///< of a kind of data set with kEndings
};

/// The text in small letters.
std::string lower(std::string text);

/// The purpose of a file or folder, as its name tells it: 0 for training, else the place in the order in which a name
/// is preferred for evaluation: val, valid, validation, eval, dev, test, testing, t10k.
int evaluation_rank(const std::filesystem::path& path);

/// Whether a word of its name, which digits belong to, is one of these; in any case.
bool has_word(const std::filesystem::path& path, std::span<const std::string_view> words);

/// Whether a word of its name is train or training, in any case.
bool names_training(const std::filesystem::path& path);

/// Whether it is named as a tokenizer's own file that cannot be read: tokenizer.json, config.json.
bool names_tokenizer(const std::filesystem::path& path);

/// Whether it is named as what tells of data rather than as data: README.txt, LICENSE-MIT.txt.
bool names_remarks(const std::filesystem::path& path);

struct FoundFile {
  std::string path;
  Format format = Format::kText;
  int evaluation_rank = 0;
};

/// None for what is no data that a job can name. In a folder a text is *.txt; a file that the user names may end in
/// anything. Throws StorageError where it cannot be read. The path is that of a regular file: a pipe would be waited
/// for.
std::optional<FoundFile> look_at_file(const std::filesystem::path& path, bool named_by_user);

/// Paths of one format, by what they are for.
struct Split {
  std::vector<std::string> train;
  std::vector<std::string> eval;  ///< of the preferred name alone: val rather than test
};
Split split(const std::vector<FoundFile>& files, Format format);

/// Whether a folder's entry, or what it links to, is a file or a folder. Neither where a link leads nowhere.
bool is_file(const std::filesystem::directory_entry& entry);
bool is_folder(const std::filesystem::directory_entry& entry);

/// The folders in the folder that are not hidden, sorted.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder);

/// *.jpg, *.jpeg, *.png and *.webp, in any case.
bool is_image(const std::filesystem::path& path);

}  // namespace lockstep::init
