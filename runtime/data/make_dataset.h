// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "runtime/data/arrays.h"
#include "runtime/data/augment.h"
#include "runtime/data/cifar.h"
#include "runtime/data/csv.h"
#include "runtime/data/dataset.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/description.h"
#include "runtime/data/hold_out.h"
#include "runtime/data/idx.h"
#include "runtime/data/image_folder.h"
#include "runtime/data/image_masks.h"
#include "runtime/data/normalize.h"
#include "runtime/data/preparation.h"
#include "runtime/data/registered.h"
#include "runtime/data/shards.h"
#include "runtime/data/spheres.h"
#include "runtime/data/svmlight.h"
#include "runtime/data/synthetic.h"
#include "runtime/data/tokens.h"
#include "runtime/data/volumes.h"

namespace lockstep::data {

/// The kinds of data sets that there are.
using DatasetKinds = std::tuple<IdxKind, CifarKind, SyntheticKind, TokensKind, ArraysKind, CsvKind, ImageFolderKind,
                                SpheresKind, ShardsKind, VolumesKind, SvmlightKind, ImageMasksKind, RegisteredKind>;

template <class Kinds>
struct OptionsOf;
template <class... Kinds>
struct OptionsOf<std::tuple<Kinds...>> {
  using Any = std::variant<typename Kinds::Options...>;
};
using DatasetOptions = OptionsOf<DatasetKinds>::Any;

/// The kind that has these options.
template <class Options, class Kinds>
struct FindKind;
template <class Options, class Kind, class... Others>
struct FindKind<Options, std::tuple<Kind, Others...>>
    : std::conditional_t<std::same_as<Options, typename Kind::Options>, std::type_identity<Kind>,
                         FindKind<Options, std::tuple<Others...>>> {};
template <class Options>
using KindOf = typename FindKind<Options, DatasetKinds>::type;

/// Calls `visit` with the kind, an object that stands for its type, and the options.
template <class Visit, class Options>
decltype(auto) visit_kind(Options& options, Visit&& visit) {
  return std::visit(
      [&]<class Chosen>(Chosen& chosen) -> decltype(auto) {
        return visit(KindOf<std::remove_const_t<Chosen>>(), chosen);
      },
      options);
}

/// The data that a model is trained on and evaluated with.
struct DataOptions {
  DatasetOptions train = {};
  std::optional<DatasetOptions> eval = {};
  NormalizeOptions normalize = {};           ///< of both
  AugmentOptions augment = {};               ///< of training data
  HoldOutOptions hold_out = {};              ///< in place of `eval`
  NormalizeOptions normalize_target = {};    ///< of targets of numbers, of both
  std::optional<Preparation> prepared = {};  ///< stands for the training data, which need not be there: prepare()

  /// Of the samples of `train`, where both sides of hold_out are asked for: kept from the first call to the second.
  std::shared_ptr<SampleContents> contents = {};

  bool evaluates() const { return eval.has_value() || hold_out.eval_share > 0; }
  bool operator==(const DataOptions&) const = default;
};

enum class Split { kTrain, kEval };

/// Describes what make_dataset() would give, from the headers and labels of its files. Throws what make_dataset() would
/// throw for these. require_augment(), require_volume_augment(), require_normalize() and
/// require_normalize_target() check whether augmentation and normalisation fit.
Description describe(const DataOptions& options, Split split);

/// Where the training data's classes would be counted for the evaluation data, they are `classes`: for who has looked
/// at the training data anyway.
void set_counted_classes(DataOptions& options, std::int64_t classes);

/// The names of the classes of training data, in their order: its folders, or what the target column of its tables
/// says. None where the data know classes by their numbers. Throws as the data set does.
std::vector<std::string> class_names(const DatasetOptions& train);

/// The files that the options name, in their order.
std::vector<NamedFile> files_of(const DatasetOptions& options);

Targets targets_of(const DatasetOptions& options);

/// Whether the number of classes is that of the labels in the files: the options do not say it.
bool counts_classes(const DatasetOptions& options);

/// The name that a job has for the kind: "idx".
std::string_view kind_of(const DatasetOptions& options);

/// The data set: normalised, and for training augmented; of volumes that are trained on in patches, evaluation data are
/// the patches in the middle. Evaluation data of the training data's kind that say nothing
/// of their classes have those of the training data; generated evaluation samples differ from the training samples.
/// With hold_out the training samples that are held out are the evaluation data, and the others the training data; what
/// is learned from data before, such as their classes, is learned from all of them. Throws FieldError, naming the
/// option as a job would ("data.train.idx.images"), for options without a meaning and for those that do not fit the
/// samples, and StorageError for files that cannot be read.
DatasetPtr make_dataset(const DataOptions& options, Split split);

}  // namespace lockstep::data
