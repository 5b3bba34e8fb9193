// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/data/arrays_options.h"
#include "runtime/data/augment.h"
#include "runtime/data/cifar.h"
#include "runtime/data/csv_options.h"
#include "runtime/data/dataset.h"
#include "runtime/data/description.h"
#include "runtime/data/idx.h"
#include "runtime/data/image_folder_options.h"
#include "runtime/data/normalize.h"
#include "runtime/data/shards_options.h"
#include "runtime/data/spheres.h"
#include "runtime/data/synthetic.h"
#include "runtime/data/tokens_options.h"
#include "runtime/data/volumes_options.h"

namespace lockstep::data {

using DatasetOptions = std::variant<IdxOptions, CifarOptions, SyntheticOptions, TokensOptions, ArraysOptions,
                                    CsvOptions, ImageFolderOptions, SpheresOptions, ShardsOptions, VolumesOptions>;

/// The data that a model is trained on and evaluated with.
struct DataOptions {
  DatasetOptions train = {};
  std::optional<DatasetOptions> eval = {};
  NormalizeOptions normalize = {};  ///< of both
  AugmentOptions augment = {};      ///< of training data

  bool operator==(const DataOptions&) const = default;
};

enum class Split { kTrain, kEval };

/// What make_dataset() would give, known from the headers and labels of its files. Throws what that would throw for
/// them; whether augmentation and normalisation fit is for require_augment(), require_volume_augment() and
/// require_normalize().
Description describe(const DataOptions& options, Split split);

/// Where the training data's classes would be counted for the evaluation data, they are `classes`: for who has looked
/// at the training data anyway.
void set_counted_classes(DataOptions& options, std::int64_t classes);

/// The names of the classes of training data, in their order: its folders, or what the target column of its tables
/// says. None where the data know classes by their numbers. Throws as the data set does.
std::vector<std::string> class_names(const DatasetOptions& train);

/// A file of a data set and the field of the options that names it: "images", "files[1]".
struct NamedFile {
  std::string field;
  std::string path;
};
std::vector<NamedFile> files_of(const DatasetOptions& options);

/// The data set: normalised, and for training augmented; of volumes that are trained on in patches, evaluation data are
/// the patches in the middle. Evaluation data of the training data's kind that say nothing
/// of their classes have those of the training data; generated evaluation samples differ from the training samples.
/// Throws FieldError, naming the option as a job would ("data.train.idx.images"), for options without a meaning and for
/// those that do not fit the samples, and StorageError for files that cannot be read.
DatasetPtr make_dataset(const DataOptions& options, Split split);

}  // namespace lockstep::data
