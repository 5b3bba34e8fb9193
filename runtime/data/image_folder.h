// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"
#include "runtime/data/image_folder_options.h"

namespace lockstep::data {

/// The images below a folder that holds a folder a class, as torchvision's ImageFolder takes them: *.jpg, *.jpeg,
/// *.png and *.webp in any case, in folders within those too, sorted by path; links are followed, but not to a
/// folder that they lie in. Samples are [size, size, 3] of values in [0, 1], decoded when they are drawn.
class ImageFolderDataset : public Dataset {
 public:
  /// Lists the files. Throws FieldError for options without a meaning, and StorageError for folders that cannot be
  /// read, that hold no image, or that are none of the class names given.
  explicit ImageFolderDataset(const ImageFolderOptions& options);

  Description describe() const;
  const std::vector<std::string>& class_names() const { return class_names_; }

  std::int64_t size() const override { return std::ssize(files_); }
  Shape sample_shape() const override { return {options_.size, options_.size, 3}; }
  std::int64_t classes() const override { return std::ssize(class_names_); }
  /// Throws StorageError that names the file and index of an image that is damaged or too large.
  TargetSummary target_summary() const override;
  void get(const SampleKey& key, const Sample& sample) const override;
  void add_to_digest(DataHashes& hashes) const override;
  void add_to_preparation(Preparation& preparation) const override;
  /// Adds that of its file: its size, and the first and the last 64 KiB.
  void add_content(std::int64_t index, Hash128& hash) const override;

 private:
  struct File {
    std::string path;  ///< below the folder
    std::int64_t label;
  };

  ImageFolderOptions options_;
  std::vector<std::string> class_names_;
  std::vector<File> files_;
  std::vector<std::string> remarks_;
};

/// The names of the classes' folders, sorted. Throws as the data set does.
std::vector<std::string> list_classes(const std::string& folder);

/// Image folders, as a job asks for them.
struct ImageFolderKind : DatasetKind<ImageFolderKind, ImageFolderOptions> {
  static DatasetPtr open(const Options& options) { return std::make_shared<ImageFolderDataset>(options); }
  static Description describe(const Options& options) { return ImageFolderDataset(options).describe(); }
  static std::vector<std::string> class_names(const Options& options) {
    return options.class_names.empty() ? list_classes(options.folder) : options.class_names;
  }
  static void become_eval(Options& eval, const Options* train) {
    if (train == nullptr) return;
    eval.class_names = train->class_names.empty() ? list_classes(train->folder) : train->class_names;
  }
};

}  // namespace lockstep::data
