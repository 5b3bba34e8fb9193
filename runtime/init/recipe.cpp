// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/recipe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "model_zoo/build.h"
#include "runtime/base/error.h"

namespace lockstep::init {

namespace {

/// The most steps for a language model, unless one pass over the text takes more.
constexpr std::int64_t kMostSteps = 20000;

/// The batch that is usual, or fewer: an epoch of a small data set still has some steps.
std::int64_t batch_of(const data::Description& data, std::int64_t usual) {
  constexpr std::int64_t kLeast = 4;
  while (usual > kLeast && data.samples < 8 * usual) usual /= 2;
  return std::min(usual, data.samples);
}

/// With the learning rate in proportion to the batch.
std::string sgd(double rate_of_64, std::int64_t batch) {
  return fmt::format("sgd {{ lr: {:.3g} momentum: 0.9 nesterov: true weight_decay: 5e-4 }}",
                     rate_of_64 * static_cast<double>(batch) / 64);
}

bool is_image(const Shape& shape) { return shape.rank() == 3; }
bool is_volume(const data::Description& data) { return data.sample_shape.rank() == 4; }

/// Whether random_resized_crop can draw from them.
bool are_photographs(const FoundData& found) {
  return std::holds_alternative<data::ImageFolderOptions>(found.options.train) ||
         std::holds_alternative<data::ShardsOptions>(found.options.train);
}

std::string default_model(const data::Description& data) {
  const Shape& shape = data.sample_shape;
  if (data.vocabulary > 0) return "gpt";
  if (is_volume(data) && data.target_shape.rank() >= 3) return "unet3d";
  if (is_image(shape) && data.target_shape.rank() >= 2) return "unet2d";
  if (!is_image(shape)) return "mlp";
  return std::min(shape[0], shape[1]) >= 32 && shape[2] == 3 ? "resnet" : "convnet";
}

Recipe mlp(const FoundData&, const data::Description& data, std::string_view) {
  const std::int64_t width = data.sample_shape.numel() > 128 ? 256 : 64;
  return {.model = fmt::format("mlp {{ hidden: [{0}, {0}] dropout: 0.1 }}", width),
          .optimizer = "adamw { lr: 1e-3 weight_decay: 0.01 }",
          .batch = batch_of(data, 64),
          .epochs = 30,
          .patience = 4};
}

Recipe convnet(const FoundData&, const data::Description& data, std::string_view) {
  const bool large = is_image(data.sample_shape) && std::min(data.sample_shape[0], data.sample_shape[1]) >= 16;
  return {
      .model = fmt::format("convnet {{ block {{ channels: 32 }} block {{ channels: 64 stride: 2 }}{} dropout: 0.2 }}",
                           large ? " block { channels: 128 stride: 2 }" : ""),
      .augment = large ? "pad_crop: 2" : "pad_crop: 1",
      .amp = "opt_level: O1 dtype: BF16",
      .optimizer = sgd(0.1, batch_of(data, 64)),
      .batch = batch_of(data, 64),
      .epochs = 20};
}

/// The recipe of a convolutional network, whose name in a job is `model`.
Recipe of_images(const FoundData& found, const data::Description& data, std::string model) {
  const bool large = is_image(data.sample_shape) && std::min(data.sample_shape[0], data.sample_shape[1]) >= 64;
  const bool photographs = are_photographs(found);
  return {
      .model = std::move(model),
      .augment = photographs && large ? "random_resized_crop { min_area: 0.35 } flip: true" : "pad_crop: 4 flip: true",
      .amp = "opt_level: O1 dtype: BF16",
      .optimizer = sgd(0.05, batch_of(data, 64)),
      .batch = batch_of(data, 64),
      .epochs = 30};
}

/// "resnet" is the least deep one.
Recipe resnet(const FoundData& found, const data::Description& data, std::string_view name) {
  const std::string_view depth = name == "resnet" ? "18" : name.substr(6);
  const bool large = is_image(data.sample_shape) && std::min(data.sample_shape[0], data.sample_shape[1]) >= 64;
  return of_images(found, data, fmt::format("resnet {{ depth: {}{} }}", depth, large ? "" : " stem: CIFAR"));
}

Recipe vit(const FoundData& found, const data::Description& data, std::string_view) {
  const bool photographs = are_photographs(found);
  const bool image = is_image(data.sample_shape);
  const std::int64_t side = image ? std::min(data.sample_shape[0], data.sample_shape[1]) : 0;
  const bool large = side >= 128;
  // A model of its full width learns from millions of images.
  const std::string sizes = large ? "layers: 12 heads: 6 width: 384" : "layers: 6 heads: 4 width: 192";
  return {.model = fmt::format("vit {{ patch: {} {} dropout: 0.1 }}",
                               large        ? 16
                               : side >= 32 ? 4
                                            : 2,
                               sizes),
          .augment = photographs && side >= 64 ? "random_resized_crop { min_area: 0.35 } flip: true" : "pad_crop: 1",
          .amp = "opt_level: O1 dtype: BF16",
          .optimizer = "adamw { lr: 5e-4 weight_decay: 0.05 } clip_norm: 1.0",
          .batch = batch_of(data, 64),
          .epochs = 100};
}

Recipe language_model(const FoundData& found, const data::Description& data, std::string_view name) {
  if (data.vocabulary == 0) throw UsageError(fmt::format("{} learns texts; these data are {}", name, found.what));
  // A vocabulary of words needs more than one of bytes.
  const bool bytes = data.vocabulary <= 256;
  const std::string sizes = bytes ? "layers: 4 heads: 4 width: 128" : "layers: 6 heads: 6 width: 384";
  return {.model = fmt::format("{} {{ {} context: {} }}", name, sizes, data.sample_shape[0]),
          .amp = "opt_level: O1 dtype: BF16",
          .optimizer = "adamw { lr: 1e-3 beta2: 0.99 weight_decay: 0.1 } clip_norm: 1.0",
          .metric = "eval.loss",
          .batch = batch_of(data, 32),
          // A long text needs no second pass.
          .epochs = std::clamp<std::int64_t>(kMostSteps * 32 / std::max<std::int64_t>(1, data.samples), 1, 10)};
}

Recipe bert(const FoundData& found, const data::Description& data, std::string_view name) {
  Recipe recipe = language_model(found, data, name);
  recipe.optimizer = "adamw { lr: 5e-4 weight_decay: 0.01 } clip_norm: 1.0";
  const auto* tokens = std::get_if<data::TokensOptions>(&found.options.train);
  if (tokens == nullptr || !tokens->masked) throw UsageError("bert learns the hidden tokens of texts");
  return recipe;
}

Recipe unet3d(const FoundData& found, const data::Description& data, std::string_view) {
  std::int64_t levels = 3;
  std::vector<std::int64_t> patch;
  if (is_volume(data)) {
    const auto extents = data.sample_shape.extents().first(3);
    while (levels > 1 && *std::ranges::min_element(extents) < (std::int64_t{4} << levels)) --levels;
    const std::int64_t unit = std::int64_t{1} << levels;
    for (const std::int64_t extent : extents) patch.push_back(std::max(unit, extent / unit * unit));
    // Volumes of differing extents need a patch at any rate.
    if (std::ranges::equal(patch, extents) && !found.options.augment.volume.patch) patch.clear();
  }
  return {.model = fmt::format("unet3d {{ levels: {} channels: 16 }}", levels),
          .augment = "mirror: true intensity_scale: 0.1 intensity_shift: 0.1",
          .patch = patch.empty() ? std::nullopt : std::optional(Shape(std::span<const std::int64_t>(patch))),
          .amp = "opt_level: O1 dtype: BF16",
          .optimizer = "adamw { lr: 2e-3 }",
          .loss = found.masks ? "BCE_DICE" : "",
          .metric = found.masks ? "eval.dice" : "eval.loss",
          .batch = batch_of(data, 4),
          .epochs = 50};
}

Recipe unet2d(const FoundData& found, const data::Description& data, std::string_view) {
  std::int64_t levels = 4;
  if (is_image(data.sample_shape)) {
    const auto extents = data.sample_shape.extents().first(2);
    const auto fits = [&](std::int64_t extent) { return extent % (std::int64_t{1} << levels) == 0; };
    while (levels > 1 &&
           (*std::ranges::min_element(extents) < (std::int64_t{4} << levels) || !std::ranges::all_of(extents, fits))) {
      --levels;
    }
  }
  return {.model = fmt::format("unet2d {{ levels: {} channels: 16 }}", levels),
          .augment = "flip: true color_jitter { brightness: 0.2 contrast: 0.2 }",
          .amp = "opt_level: O1 dtype: BF16",
          .optimizer = "adamw { lr: 2e-3 }",
          .loss = found.masks ? "BCE_DICE" : "",
          .metric = found.masks ? "eval.dice" : "eval.mean_iou",
          .batch = batch_of(data, 8),
          .epochs = 50};
}

struct KnownModel {
  std::string_view name;
  Recipe (*recipe)(const FoundData& found, const data::Description& data, std::string_view name);
};

constexpr KnownModel kModels[] = {
    {"mlp", mlp},         {"convnet", convnet},    {"resnet", resnet},        {"resnet18", resnet},
    {"resnet34", resnet}, {"resnet50", resnet},    {"resnet101", resnet},     {"resnet152", resnet},
    {"vit", vit},         {"gpt", language_model}, {"llama", language_model}, {"bert", bert},
    {"unet2d", unet2d},   {"unet3d", unet3d},
};

/// Calls `visit` with the options of each model that is like others of its data: they say what a job gives them for
/// images of a shape, `static std::string init_text(const Shape& image)`.
template <class Visit>
void for_each_plain_model(Visit visit) {
  const auto visit_one = [&visit]<class Options>(std::type_identity<Options>) {
    if constexpr (requires { Options::init_text(Shape()); }) visit(Options());
  };
  [&]<class... Options>(std::type_identity<std::variant<Options...>>) {
    (visit_one(std::type_identity<Options>()), ...);
  }(std::type_identity<model_zoo::ModelOptions>());
}

Recipe recipe_of(const std::string& model, const FoundData& found, const data::Description& data) {
  const auto* const known = std::ranges::find(kModels, model, &KnownModel::name);
  if (known != std::end(kModels)) return known->recipe(found, data, known->name);
  std::optional<Recipe> recipe;
  for_each_plain_model([&]<class Options>(const Options&) {
    if (model != Options::kKind) return;
    recipe = of_images(found, data, fmt::format("{} {{ {} }}", model, Options::init_text(data.sample_shape)));
  });
  if (recipe) return *recipe;
  throw UsageError("init knows no model \"" + model + "\"", "It knows " + known_models() + ".");
}

}  // namespace

std::string known_models() {
  std::vector<std::string_view> names;
  for (const KnownModel& model : kModels) names.push_back(model.name);
  for_each_plain_model([&names]<class Options>(const Options&) { names.push_back(Options::kKind); });
  return fmt::format("{}", fmt::join(names, ", "));
}

Recipe recipe_for(const FoundData& found, const data::Description& data, const std::string& model) {
  Recipe recipe = recipe_of(model.empty() ? default_model(data) : model, found, data);
  if (!recipe.patch) recipe.patch = found.options.augment.volume.patch;
  if (recipe.metric.empty()) recipe.metric = data.classes > 0 ? "eval.accuracy" : "eval.loss";
  return recipe;
}

}  // namespace lockstep::init
