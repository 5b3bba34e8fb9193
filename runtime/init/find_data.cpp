// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/find_data.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "runtime/base/error.h"
#include "runtime/data/passed_over.h"
#include "runtime/init/files.h"
#include "runtime/init/find_kinds.h"

namespace lockstep::init {

namespace {

namespace fs = std::filesystem;

std::string looked_for() {
  return "It looks for: a folder with a folder of JPEG, PNG or WebP images for each class, also within train/ and val/ "
         "or "
         "test/; "
         "*.npy features and targets (x.npy and y.npy, x_train.npy and y_train.npy); *.csv or *.tsv tables, also "
         "gzipped; "
         "a folder of volumes (*.nii, *.nii.gz, *.npy) or images beside one of their masks; *.tar shards as WebDataset "
         "writes "
         "them; " +
         known_endings() +
         "*.txt texts, but for a readme or license, and with them a tokenizer, tokenizer.json or *.model, or "
         "vocab.json "
         "and merges.txt; *.bin "
         "tokens as "
         "nanoGPT or llm.c write them; IDX images and labels, "
         "also gzipped; CIFAR's binary version. Names with val, test or eval in them are evaluation data.";
}

FoundData find_idx(const std::vector<FoundFile>& files) {
  const Split images = split(files, Format::kIdxImages), labels = split(files, Format::kIdxLabels);
  if (images.train.size() != 1 || labels.train.size() != 1 || images.eval.size() != labels.eval.size() ||
      images.eval.size() > 1) {
    throw UsageError(fmt::format("found {} IDX files of images and {} of labels to train on, {} and {} to evaluate on",
                                 images.train.size(), labels.train.size(), images.eval.size(), labels.eval.size()),
                     "Name the images and labels of one data set.");
  }
  FoundData found{"IDX images and labels", {.train = data::IdxOptions{images.train[0], labels.train[0]}}};
  if (!images.eval.empty()) found.options.eval = data::IdxOptions{images.eval[0], labels.eval[0]};
  return found;
}

FoundData find_cifar(const Split& files, data::CifarLabels labels) {
  FoundData found{labels == data::CifarLabels::kCifar10 ? "CIFAR-10 images" : "CIFAR-100 images with their fine labels",
                  {.train = data::CifarOptions{files.train, labels}}};
  if (!files.eval.empty()) found.options.eval = data::CifarOptions{files.eval, labels};
  return found;
}

/// The tokenizer in a folder of a model's, if there is one.
TextKind text_kind_of(const fs::path& tokenizer) {
  if (tokenizer.empty()) return {};
  for (const char* const name : {"tokenizer.json", "tokenizer.model"}) {
    if (fs::is_regular_file(tokenizer / name)) return {.tokenizer_file = (tokenizer / name).string()};
  }
  const fs::path vocabulary = tokenizer / "vocab.json", merges = tokenizer / "merges.txt";
  if (!fs::is_regular_file(vocabulary) || !fs::is_regular_file(merges)) return {};
  return {.vocab_file = vocabulary.string(), .merges_file = merges.string()};
}

/// The tokenizer among the files, or that of `tokenizer`, if there is one.
TextKind text_kind(const std::vector<FoundFile>& files, const fs::path& tokenizer) {
  std::vector<std::string> tokenizers, vocabularies, merges;
  for (const FoundFile& file : files) {
    if (file.format == Format::kTokenizer) tokenizers.push_back(file.path);
    if (file.format == Format::kVocabulary) vocabularies.push_back(file.path);
    if (file.format == Format::kMerges) merges.push_back(file.path);
  }
  // Models are published with several forms of one tokenizer, of which tokenizer.json says the most.
  const auto is_json = [](const std::string& file) { return file.ends_with(".json"); };
  if (std::ranges::any_of(tokenizers, is_json)) std::erase_if(tokenizers, std::not_fn(is_json));
  if (tokenizers.size() == 1) return {.tokenizer_file = tokenizers[0]};
  if (tokenizers.size() > 1) {
    throw UsageError(
        fmt::format("found {} tokenizers beside texts, {} and {}", tokenizers.size(), tokenizers[0], tokenizers[1]),
        "Name the texts, and the one that is to encode them.");
  }
  if (vocabularies.empty() && merges.empty()) return text_kind_of(tokenizer);
  if (vocabularies.size() == 1 && merges.size() == 1) {
    return {.vocab_file = vocabularies[0], .merges_file = merges[0]};
  }
  throw UsageError(fmt::format("found {} files vocab.json and {} merges.txt beside texts; a vocabulary is one of each",
                               vocabularies.size(), merges.size()),
                   "Name the texts, and of one vocabulary both files; without them a token is a byte.");
}

std::vector<FoundFile> files_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const fs::path& path = entry.path();
    if (is_file(entry) && !path.filename().string().starts_with('.') && !names_remarks(path)) paths.push_back(path);
  }
  std::ranges::sort(paths);
  std::vector<FoundFile> files;
  for (const fs::path& path : paths) {
    if (auto file = look_at_file(path, false)) files.push_back(std::move(*file));
  }
  // A note among files of a format that is not known says something of them: it is not the data.
  const bool texts = std::ranges::all_of(files, [](const FoundFile& file) {
    return file.format == Format::kText || file.format == Format::kVocabulary || file.format == Format::kMerges ||
           file.format == Format::kTokenizer;
  });
  if (texts && !files.empty() && 5 * files.size() < paths.size()) {
    throw UsageError(fmt::format("{} holds {} files that are no data that a job can name, beside {}", folder.string(),
                                 paths.size() - files.size(), files[0].path),
                     "Name the texts themselves to learn from them.");
  }
  return files;
}

/// "; 3 images of formats that are not read are left out: 3 .gif ...", where the folder holds such; else empty.
std::string images_of_other_formats(const fs::path& folder) {
  if (!fs::is_directory(folder)) return "";
  std::string text;
  for (const std::string& remark : data::passed_over_below(folder).remarks()) text += "; " + remark;
  return text;
}

std::vector<FoundFile> files_named(const std::vector<fs::path>& paths) {
  std::vector<FoundFile> files;
  for (const fs::path& path : paths) {
    if (fs::is_directory(path))
      throw UsageError(path.string() + " is a folder; name one folder, or files", looked_for());
    if (!fs::is_regular_file(path)) throw UsageError(path.string() + " is neither a file nor a folder", looked_for());
    auto file = look_at_file(path, true);
    if (!file) throw UsageError(path.string() + " is no data that a job can name", looked_for());
    files.push_back(std::move(*file));
  }
  return files;
}

}  // namespace

FoundData find_data(const std::vector<fs::path>& paths, const FindOptions& options) {
  try {
    for (const fs::path& path : paths) {
      if (!fs::exists(path)) throw UsageError("there is no " + path.string());
    }
    const bool is_folder = paths.size() == 1 && fs::is_directory(paths[0]);
    if (is_folder) {
      if (auto pairs = find_image_masks(paths[0])) return *pairs;
      if (auto images = find_images(paths[0])) return *images;
      if (auto volumes = find_volumes(paths[0])) return *volumes;
    }
    const std::vector<FoundFile> files = is_folder ? files_in(paths[0]) : files_named(paths);
    const auto has = [&files](Format format) {
      return std::ranges::any_of(files, [format](const FoundFile& file) { return file.format == format; });
    };
    if (has(Format::kIdxImages)) return find_idx(files);
    if (has(Format::kCifar10)) return find_cifar(split(files, Format::kCifar10), data::CifarLabels::kCifar10);
    if (has(Format::kCifar100)) return find_cifar(split(files, Format::kCifar100), data::CifarLabels::kCifar100Fine);
    if (has(Format::kByEnding)) return find_by_ending(split(files, Format::kByEnding));
    if (has(Format::kArray)) return find_arrays(split(files, Format::kArray));
    if (has(Format::kTable)) return find_table(split(files, Format::kTable), options.target);
    if (has(Format::kTar)) return find_shards(split(files, Format::kTar));
    if (has(Format::kTokens)) return find_text(split(files, Format::kTokens), {.tokens = true}, options);
    if (has(Format::kText)) return find_text(split(files, Format::kText), text_kind(files, options.tokenizer), options);
    throw UsageError(paths[0].string() + " holds no data that a job can name" + images_of_other_formats(paths[0]),
                     looked_for());
  } catch (const fs::filesystem_error& error) {
    throw StorageError(std::string("cannot look at the data: ") + error.what());
  }
}

}  // namespace lockstep::init
