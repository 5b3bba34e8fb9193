// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/make_dataset.h"

#include <memory>
#include <utility>
#include <variant>

#include "runtime/base/error.h"
#include "runtime/base/field_path.h"
#include "runtime/data/color_jitter.h"
#include "runtime/data/mixup.h"
#include "runtime/data/normalize_target.h"

namespace lockstep::data {

namespace {

/// Images are cropped where they are decoded.
void take_crop(DatasetOptions& train, const AugmentOptions& augment) {
  if (!augment.random_resized_crop) return;
  const char* const path = "data.augment.random_resized_crop";
  const auto take = [&]<class Options>(Options& options) {
    if constexpr (requires { options.random_resized_crop; }) {
      options.random_resized_crop = augment.random_resized_crop;
    } else {
      throw FieldError(path, "is for data.train.image_folder, data.train.shards and data.train.image_masks");
    }
  };
  std::visit(take, train);
}

/// Whether the patch is the data set's own to cut: volumes that differ in extents are cut when they are read.
template <class Options>
concept CutsItself = requires(Options& options) {
  options.patch;
  options.place;
};
bool cuts_itself(const DatasetOptions& options) {
  return std::visit([]<class Options>(const Options&) { return CutsItself<Options>; }, options);
}

void take_patch(DatasetOptions& chosen, const AugmentOptions& augment, Split split) {
  if (!augment.volume.patch) return;
  const auto take = [&]<class Options>(Options& options) {
    if constexpr (CutsItself<Options>) {
      options.patch = augment.volume.patch;
      options.place = split == Split::kTrain ? WindowPlace::kRandom : WindowPlace::kMiddle;
    }
  };
  std::visit(take, chosen);
}

/// Windows that share tokens would be on both sides.
void require_apart(const DataOptions& options) {
  const auto* const tokens = std::get_if<TokensOptions>(&options.train);
  if (tokens == nullptr || tokens->stride == 0 || tokens->stride >= tokens->context) return;
  throw FieldError("data.eval_share", "needs samples that share no tokens: data.train.tokens.stride >= context",
                   "Or hold out the end of the text: end: 0.9 in data.train, begin: 0.9 in data.eval.");
}

/// Training images that are windows of larger ones are drawn at random.
void take_place(DatasetOptions& train) {
  std::visit(
      []<class Options>(Options& options) {
        if constexpr (requires { options.place; } && !CutsItself<Options>) options.place = WindowPlace::kRandom;
      },
      train);
}

/// The options of one split, checked, with what they take from the other one.
DatasetOptions options_of(const DataOptions& options, Split split) {
  const bool training = split == Split::kTrain;
  const std::string path = training ? "data.train" : "data.eval";
  const bool holds_out = options.hold_out.eval_share > 0;
  if (!training && !options.evaluates()) throw FieldError(path, "names no data set");
  if (holds_out && options.eval) throw FieldError("data.eval_share", "stands in place of data.eval: give one");
  if (holds_out) require_apart(options);
  DatasetOptions chosen = training || holds_out ? options.train : *options.eval;
  visit_kind(chosen, [&path](auto, const auto& kind) { require_none(problems_of(kind), join_path(path, kind.kKind)); });
  require_none(problems_of(options.augment), "data.augment");
  const auto take_preparation = [&options](DatasetOptions& train) {
    if (!options.prepared) return;
    visit_kind(train, [&options]<class Kind>(Kind, auto& kind) { Kind::take_preparation(kind, *options.prepared); });
  };
  if (training || holds_out) take_preparation(chosen);
  take_patch(chosen, options.augment, split);
  if (training) {
    take_crop(chosen, options.augment);
    take_place(chosen);
    return chosen;
  }
  if (holds_out) return chosen;
  DatasetOptions train_options = options.train;
  take_preparation(train_options);
  // Training volumes are counted as they are trained on.
  take_patch(train_options, options.augment, Split::kTrain);
  visit_kind(chosen, [&train_options]<class Kind>(Kind, auto& eval) {
    Kind::become_eval(eval, std::get_if<typename Kind::Options>(&train_options));
  });
  return chosen;
}

SideSamples side_of(const Dataset& all, const DataOptions& options, Split split) {
  SampleContents once;
  return samples_of(all, options.hold_out, split == Split::kTrain ? Side::kTrained : Side::kHeldOut,
                    options.contents ? *options.contents : once);
}

DatasetPtr open_kind(const DatasetOptions& chosen) {
  return visit_kind(chosen, []<class Kind>(Kind, const auto& kind) { return Kind::open(kind); });
}

}  // namespace

std::vector<std::string> class_names(const DatasetOptions& train) {
  return visit_kind(train, []<class Kind>(Kind, const auto& options) { return Kind::class_names(options); });
}

std::vector<NamedFile> files_of(const DatasetOptions& options) {
  return visit_kind(options, []<class Kind>(Kind, const auto& chosen) { return Kind::files(chosen); });
}

Targets targets_of(const DatasetOptions& options) {
  return visit_kind(options, []<class Kind>(Kind, const auto& chosen) { return Kind::targets(chosen); });
}

bool counts_classes(const DatasetOptions& options) {
  return std::visit(
      []<class Options>(const Options& chosen) {
        if constexpr (counts_classes<Options>()) {
          return chosen.classes == 0;
        } else {
          return false;
        }
      },
      options);
}

std::string_view kind_of(const DatasetOptions& options) {
  return std::visit([](const auto& chosen) { return chosen.kKind; }, options);
}

void set_counted_classes(DataOptions& options, std::int64_t classes) {
  visit_kind(options.train, [classes]<class Kind>(Kind, auto& train) { Kind::set_counted_classes(train, classes); });
}

Description describe(const DataOptions& options, Split split) {
  if (split == Split::kTrain && options.prepared) {
    Description trained = options.prepared->trained;
    // What the job says of the targets' scale holds for its model.
    trained.target_summary.scale = {.mean = options.normalize_target.mean, .std = options.normalize_target.std};
    return trained;
  }
  const DatasetOptions chosen = options_of(options, split);
  Description data = visit_kind(chosen, []<class Kind>(Kind, const auto& kind) { return Kind::describe(kind); });
  if (options.hold_out.eval_share > 0) data = described(std::move(data), side_of(*open_kind(chosen), options, split));
  data.target_summary.scale = {.mean = options.normalize_target.mean, .std = options.normalize_target.std};
  const std::optional<Shape>& patch = options.augment.volume.patch;
  return patch && !cuts_itself(chosen) ? patched(std::move(data), *patch) : data;
}

DatasetPtr make_dataset(const DataOptions& options, Split split) {
  const DatasetOptions chosen = options_of(options, split);
  DatasetPtr dataset = open_kind(chosen);
  if (options.hold_out.eval_share > 0) dataset = std::make_shared<Subset>(dataset, side_of(*dataset, options, split));
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
  if (options.normalize_target != NormalizeOptions()) {
    dataset = std::make_shared<NormalizeTarget>(dataset, options.normalize_target);
  }
  // The other sample is one that was augmented, too.
  if (split == Split::kTrain && options.augment.mixup != 0) {
    dataset = std::make_shared<Mixup>(dataset, options.augment.mixup);
  }
  return dataset;
}

}  // namespace lockstep::data
