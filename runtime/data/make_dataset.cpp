// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/make_dataset.h"

#include <fmt/format.h>

#include <type_traits>

#include "runtime/base/error.h"
#include "runtime/data/arrays.h"
#include "runtime/data/color_jitter.h"
#include "runtime/data/csv.h"
#include "runtime/data/formats/brace_expansion.h"
#include "runtime/data/image_folder.h"
#include "runtime/data/masked_tokens.h"
#include "runtime/data/mixup.h"
#include "runtime/data/shards.h"
#include "runtime/data/tokens.h"
#include "runtime/data/volumes.h"

namespace lockstep::data {

namespace {

/// Generated evaluation samples come from far behind the training samples of the same sequence.
constexpr std::int64_t kFirstEvalSample = std::int64_t{1} << 40;

std::string path_of(const IdxOptions&, const std::string& path) { return path + ".idx"; }
std::string path_of(const CifarOptions&, const std::string& path) { return path + ".cifar"; }
std::string path_of(const SyntheticOptions&, const std::string& path) { return path + ".synthetic"; }
std::string path_of(const TokensOptions&, const std::string& path) { return path + ".tokens"; }
std::string path_of(const ArraysOptions&, const std::string& path) { return path + ".arrays"; }
std::string path_of(const CsvOptions&, const std::string& path) { return path + ".csv"; }
std::string path_of(const ImageFolderOptions&, const std::string& path) { return path + ".image_folder"; }
std::string path_of(const SpheresOptions&, const std::string& path) { return path + ".spheres"; }
std::string path_of(const ShardsOptions&, const std::string& path) { return path + ".shards"; }
std::string path_of(const VolumesOptions&, const std::string& path) { return path + ".volumes"; }

/// Throws FieldError for options without a meaning.
template <class Options>
void check(const Options& options, const std::string& path) {
  if constexpr (requires { problems_of(options); }) {
    require_none(problems_of(options), path);
  } else {
    require_sound(options, path);
  }
}

// An evaluation set may lack a class: without a number or names in its options, the training set's labels tell.

void take_classes(IdxOptions& eval, const IdxOptions& train) {
  if (eval.classes == 0) eval.classes = train.classes > 0 ? train.classes : count_idx_classes(train.labels);
}

void take_classes(ArraysOptions& eval, const ArraysOptions& train) {
  if (eval.classes > 0 || eval.target_kind == TargetKind::kNumbers || train.target_kind == TargetKind::kNumbers) return;
  eval.classes = train.classes > 0 ? train.classes : count_array_classes(train.targets);
}

/// Columns are the training data's by name, whatever their order in the evaluation data's files.
void take_classes(CsvOptions& eval, const CsvOptions& train) {
  const CsvDataset dataset(train);
  if (eval.header && eval.features.empty()) eval.features = dataset.feature_names();
  if (eval.header && eval.target.empty()) eval.target = dataset.target_name();
  // Evaluation data need not have weights.
  if (eval.weight.empty() && !dataset.weight_name().empty() && has_csv_column(eval, dataset.weight_name())) {
    eval.weight = dataset.weight_name();
  }
  if (eval.classes > 0 || eval.target_kind == TargetKind::kNumbers || train.target_kind == TargetKind::kNumbers) return;
  eval.classes = dataset.classes();
  eval.class_names = dataset.class_names();
}

void take_classes(ImageFolderOptions& eval, const ImageFolderOptions& train) {
  eval.class_names = list_classes(train.folder);
}

void take_classes(ShardsOptions& eval, const ShardsOptions& train) {
  if (eval.classes == 0) eval.classes = train.classes > 0 ? train.classes : count_shard_classes(train);
}

void take_classes(VolumesOptions& eval, const VolumesOptions& train) {
  if (eval.classes > 0 || eval.target_kind == TargetKind::kNumbers || train.target_kind == TargetKind::kNumbers) return;
  eval.classes = train.classes > 0 ? train.classes : count_volume_classes(train);
}

/// Of other kinds, each file says it alone.
template <class Options>
void take_classes(Options&, const Options&) {}

/// Texts hide tokens as those do that are trained on.
void take_masks(TokensOptions& eval, const TokensOptions& train) {
  if (eval.masked && !train.masked) {
    throw FieldError("data.eval.tokens.masked", "the targets of data.train.tokens are the tokens after each");
  }
  if (!eval.masked) eval.masked = train.masked;
  if (eval.masked && !eval.masked->mask_token) eval.masked->mask_token = train.masked->mask_token;
}

/// Images are cropped where they are decoded.
void take_crop(DatasetOptions& train, const AugmentOptions& augment) {
  if (!augment.random_resized_crop) return;
  const char* const path = "data.augment.random_resized_crop";
  require_none(problems_of(*augment.random_resized_crop), path);
  const auto take = [&]<class Options>(Options& options) {
    if constexpr (requires { options.random_resized_crop; }) {
      options.random_resized_crop = augment.random_resized_crop;
    } else {
      throw FieldError(path, "is for data.train.image_folder and data.train.shards");
    }
  };
  std::visit(take, train);
}

/// Volumes may differ in extents, so that each is cut when it is read.
void take_patch(DatasetOptions& chosen, const AugmentOptions& augment, Split split) {
  auto* const volumes = std::get_if<VolumesOptions>(&chosen);
  if (volumes == nullptr || !augment.volume.patch) return;
  require_patch(*augment.volume.patch);
  volumes->patch = augment.volume.patch;
  volumes->place = split == Split::kTrain ? WindowPlace::kRandom : WindowPlace::kMiddle;
}

/// Whether the patch is the data set's own to cut.
bool cuts_itself(const DatasetOptions& options) { return std::holds_alternative<VolumesOptions>(options); }

/// The options of one split, checked, with what they take from the other one.
DatasetOptions options_of(const DataOptions& options, Split split) {
  const bool training = split == Split::kTrain;
  const std::string path = training ? "data.train" : "data.eval";
  if (!training && !options.eval) throw FieldError(path, "names no data set");
  DatasetOptions chosen = training ? options.train : *options.eval;
  std::visit([&path](const auto& kind) { check(kind, path_of(kind, path)); }, chosen);
  take_patch(chosen, options.augment, split);
  if (training) {
    take_crop(chosen, options.augment);
    return chosen;
  }
  // What is counted in training volumes is counted as they are trained on.
  DatasetOptions train_options = options.train;
  take_patch(train_options, options.augment, Split::kTrain);
  const auto take = [&train_options]<class Options>(Options& eval) {
    if (const auto* const train = std::get_if<Options>(&train_options)) take_classes(eval, *train);
  };
  std::visit(take, chosen);
  auto* const tokens = std::get_if<TokensOptions>(&chosen);
  const auto* const trained = std::get_if<TokensOptions>(&options.train);
  if (tokens != nullptr && trained != nullptr) take_masks(*tokens, *trained);
  if (auto* const synthetic = std::get_if<SyntheticOptions>(&chosen)) synthetic->first_sample += kFirstEvalSample;
  if (auto* const spheres = std::get_if<SpheresOptions>(&chosen)) spheres->first_sample += kFirstEvalSample;
  return chosen;
}

DatasetPtr open(const IdxOptions& options) { return open_idx(options); }
DatasetPtr open(const CifarOptions& options) { return open_cifar(options); }
DatasetPtr open(const SyntheticOptions& options) { return std::make_shared<SyntheticDataset>(options); }
DatasetPtr open(const TokensOptions& options) {
  const auto tokens = std::make_shared<TokensDataset>(options);
  return options.masked ? std::make_shared<MaskedTokens>(tokens, *options.masked) : DatasetPtr(tokens);
}
DatasetPtr open(const ArraysOptions& options) { return std::make_shared<ArraysDataset>(options); }
DatasetPtr open(const CsvOptions& options) { return std::make_shared<CsvDataset>(options); }
DatasetPtr open(const ImageFolderOptions& options) { return std::make_shared<ImageFolderDataset>(options); }
DatasetPtr open(const SpheresOptions& options) { return std::make_shared<SpheresDataset>(options); }
DatasetPtr open(const VolumesOptions& options) { return std::make_shared<VolumesDataset>(options); }
DatasetPtr open(const ShardsOptions& options) { return std::make_shared<ShardsDataset>(options); }

Description describe(const IdxOptions& options) { return describe_idx(options); }
Description describe(const CifarOptions& options) { return describe_cifar(options); }
Description describe(const SyntheticOptions& options) { return SyntheticDataset::describe(options); }
Description describe(const TokensOptions& options) { return describe(*open(options)); }
Description describe(const ArraysOptions& options) { return ArraysDataset(options).describe(); }
Description describe(const CsvOptions& options) { return CsvDataset(options).describe(); }
Description describe(const ImageFolderOptions& options) { return ImageFolderDataset(options).describe(); }
Description describe(const SpheresOptions& options) { return describe(SpheresDataset(options)); }
Description describe(const VolumesOptions& options) { return describe(VolumesDataset(options)); }
Description describe(const ShardsOptions& options) { return ShardsDataset(options).describe(); }

std::vector<NamedFile> list(const std::vector<std::string>& files) {
  std::vector<NamedFile> named;
  for (std::size_t i = 0; i < files.size(); ++i) named.push_back({fmt::format("files[{}]", i), files[i]});
  return named;
}

std::vector<NamedFile> files_of(const IdxOptions& options) {
  return {{"images", options.images}, {"labels", options.labels}};
}
std::vector<NamedFile> files_of(const CifarOptions& options) { return list(options.files); }
std::vector<NamedFile> files_of(const SyntheticOptions&) { return {}; }
std::vector<NamedFile> files_of(const SpheresOptions&) { return {}; }
std::vector<NamedFile> files_of(const TokensOptions& options) {
  std::vector<NamedFile> files = list(options.files);
  if (!options.vocab_file.empty()) files.push_back({"vocab_file", options.vocab_file});
  if (!options.merges_file.empty()) files.push_back({"merges_file", options.merges_file});
  return files;
}
std::vector<NamedFile> files_of(const ArraysOptions& options) {
  std::vector<NamedFile> files{{"features", options.features}, {"targets", options.targets}};
  if (!options.weights.empty()) files.push_back({"weights", options.weights});
  return files;
}
std::vector<NamedFile> files_of(const CsvOptions& options) { return list(options.files); }
std::vector<NamedFile> files_of(const VolumesOptions& options) {
  return {{"images", options.images}, {"masks", options.masks}};
}
std::vector<NamedFile> files_of(const ShardsOptions& options) {
  std::vector<NamedFile> named;
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    for (std::string& path : expand_braces(options.files[i])) {
      named.push_back({fmt::format("files[{}]", i), std::move(path)});
    }
  }
  return named;
}
std::vector<NamedFile> files_of(const ImageFolderOptions& options) { return {{"folder", options.folder}}; }

template <class Options>
std::vector<std::string> class_names(const Options&) {
  return {};
}
std::vector<std::string> class_names(const CsvOptions& options) {
  if (options.target_kind == TargetKind::kNumbers || !options.class_names.empty()) return options.class_names;
  return CsvDataset(options).class_names();
}
std::vector<std::string> class_names(const ImageFolderOptions& options) {
  return options.class_names.empty() ? list_classes(options.folder) : options.class_names;
}

}  // namespace

std::vector<std::string> class_names(const DatasetOptions& train) {
  return std::visit([](const auto& kind) { return class_names(kind); }, train);
}

std::vector<NamedFile> files_of(const DatasetOptions& options) {
  return std::visit([](const auto& kind) { return files_of(kind); }, options);
}

void set_counted_classes(DataOptions& options, std::int64_t classes) {
  const auto set = [classes]<class Options>(Options& train) {
    constexpr bool counted = std::is_same_v<Options, IdxOptions> || std::is_same_v<Options, ArraysOptions> ||
                             std::is_same_v<Options, ShardsOptions> || std::is_same_v<Options, VolumesOptions>;
    if constexpr (counted) {
      if (train.classes == 0) train.classes = classes;
    }
  };
  std::visit(set, options.train);
}

Description describe(const DataOptions& options, Split split) {
  const DatasetOptions chosen = options_of(options, split);
  Description data = std::visit([](const auto& kind) { return describe(kind); }, chosen);
  const std::optional<Shape>& patch = options.augment.volume.patch;
  return patch && !cuts_itself(chosen) ? patched(std::move(data), *patch) : data;
}

DatasetPtr make_dataset(const DataOptions& options, Split split) {
  const DatasetOptions chosen = options_of(options, split);
  DatasetPtr dataset = std::visit([](const auto& kind) { return open(kind); }, chosen);
  const VolumeAugmentOptions& volume = options.augment.volume;
  if (volume.patch && !cuts_itself(chosen)) {
    const Patch::Place place = split == Split::kTrain ? Patch::Place::kRandom : Patch::Place::kMiddle;
    dataset = std::make_shared<Patch>(dataset, *volume.patch, place);
  }
  if (split == Split::kTrain) {
    // Padding is black, so it comes before the normalisation.
    require_augment(options.augment, describe(*dataset));
    if (options.augment.pad_crop > 0) dataset = std::make_shared<PadCrop>(dataset, options.augment.pad_crop);
    if (options.augment.flip) dataset = std::make_shared<Flip>(dataset);
    if (options.augment.color_jitter != ColorJitterOptions()) {
      dataset = std::make_shared<ColorJitter>(dataset, options.augment.color_jitter);
    }
    require_volume_augment(volume, describe(*dataset));
    if (volume.mirror) dataset = std::make_shared<Mirror>(dataset);
    if (volume.intensity_scale > 0 || volume.intensity_shift > 0) {
      dataset = std::make_shared<Intensity>(dataset, volume.intensity_scale, volume.intensity_shift);
    }
  }
  if (options.normalize != NormalizeOptions()) dataset = std::make_shared<Normalize>(dataset, options.normalize);
  // The other sample is one that was augmented, too.
  if (split == Split::kTrain && options.augment.mixup != 0) {
    dataset = std::make_shared<Mixup>(dataset, options.augment.mixup);
  }
  return dataset;
}

}  // namespace lockstep::data
