// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "model_zoo/build.h"
#include "tests/runtime/kernels/tensors.h"

// One model of each kind: what holds for every model is tested with each of this list, on one rank and on several.
namespace lockstep::model_zoo::examples {

/// A model whose size is published.
struct PublishedModel {
  ModelOptions options;
  std::int64_t parameters = 0;  ///< for images [224, 224, 3] and 1000 classes
};

/// A small model and the data that it fits.
struct ModelExample {
  std::string name;
  ModelOptions options;
  ModelInput input;               ///< the targets are classes
  std::vector<Shape> unfit = {};  ///< samples that the model refuses by name
  std::vector<PublishedModel> published = {};
};

inline void PrintTo(const ModelExample& example, std::ostream* out) { *out << example.name; }

inline ModelInput images() { return {.sample_shape = {8, 8, 3}, .outputs = 5, .classes = 5}; }
inline ModelInput pixels() { return {.sample_shape = {8, 8, 3}, .outputs = 3, .target_shape = {8, 8}, .classes = 3}; }
inline ModelInput volumes() {
  return {.sample_shape = {4, 4, 4, 2}, .outputs = 3, .target_shape = {4, 4, 4}, .classes = 3};
}
/// Texts with a class each.
inline ModelInput labelled_texts() { return {.sample_shape = {6}, .outputs = 9, .vocabulary = 9, .classes = 9}; }
/// Texts with a token to find at each position.
inline ModelInput texts() {
  ModelInput input = labelled_texts();
  input.target_shape = input.sample_shape;
  return input;
}

/// The options of a transformer of two layers of width 8.
template <class Options>
Options two_layers() {
  Options options;
  options.layers = 2;
  options.heads = 2;
  options.width = 8;
  return options;
}

/// One of each kind, with dropout and batch norm where the kind has them; the names are distinct.
inline std::vector<ModelExample> every_model() {
  auto gpt = two_layers<GptOptions>();
  gpt.context = 10;
  gpt.dropout = 0.1;
  auto llama = two_layers<LlamaOptions>();
  llama.kv_heads = 1;
  llama.context = 6;
  auto vit = two_layers<VitOptions>();
  vit.patch = 4;
  vit.dropout = 0.1;
  auto bert = two_layers<BertOptions>();
  bert.pad_token = 0;
  const ConvnetOptions convnet{.blocks = {{.channels = 4, .max_pool = 2}, {.channels = 6, .stride = 2, .dropout = 0.1}},
                               .dropout = 0.2,
                               .hidden = {9}};
  return {
      {"mlp", MlpOptions{.hidden = {7}, .dropout = 0.1, .batch_norm = true}, images()},
      {"convnet", convnet, images(), {{64}}},
      {"resnet",
       ResnetOptions{.depth = 18, .width = 4},
       images(),
       {{64}, {8, 8}},
       {{ResnetOptions{.depth = 18}, 11'689'512},
        {ResnetOptions{.depth = 34}, 21'797'672},
        {ResnetOptions{.depth = 50}, 25'557'032},
        {ResnetOptions{.depth = 101}, 44'549'160},
        {ResnetOptions{.depth = 152}, 60'192'808}}},
      {"mobilenet_v2",
       // A large epsilon keeps what rounding differs in small: in 52 batch norms of few samples it would grow.
       MobilenetV2Options{.width = 0.1, .small_images = true, .batch_norm_epsilon = 1},
       images(),
       {{64}},
       {{MobilenetV2Options(), 3'504'872},
        {MobilenetV2Options{.width = 0.35}, 1'677'128},
        {MobilenetV2Options{.width = 1.4}, 6'108'776}}},
      {"gpt", gpt, texts()},
      {"llama", llama, texts()},
      {"vit", vit, images(), {{64}, {8, 10, 3}}, {{VitOptions(), 86'567'656}}},
      {"bert_of_tokens", bert, texts()},
      {"bert_of_classes", bert, labelled_texts()},
      {"unet2d", Unet2dOptions{.levels = 2, .channels = 4}, pixels(), {{64}}},
      {"unet3d", Unet3dOptions{.levels = 1, .channels = 4}, volumes(), {{64}}},
  };
}

/// A batch of samples: random numbers or tokens.
inline Tensor batch_of(const ModelExample& example, std::int64_t samples, std::uint64_t seed) {
  const Shape shape = example.input.sample_shape.batched(samples);
  if (example.input.vocabulary == 0) return kernels::testing::random_tensor(shape, DType::kFloat32, seed);
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    tokens.push_back((i * i + 5 * static_cast<std::int64_t>(seed)) % example.input.vocabulary);
  }
  return Tensor::from(tokens, shape);
}

/// A class for each target of a batch.
inline Tensor classes_of(const ModelExample& example, std::int64_t samples, std::uint64_t seed) {
  const Shape shape = example.input.target_shape.batched(samples);
  std::vector<std::int64_t> classes;
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    classes.push_back((i * i + 3 * static_cast<std::int64_t>(seed)) % example.input.classes);
  }
  return Tensor::from(classes, shape);
}

/// The shape of the model's answer to a batch: an output for each class of each target.
inline Shape answer_shape(const ModelExample& example, std::int64_t samples) {
  std::vector<std::int64_t> extents{samples};
  for (const std::int64_t extent : example.input.target_shape.extents()) extents.push_back(extent);
  extents.push_back(example.input.outputs);
  return Shape(std::span<const std::int64_t>(extents));
}

}  // namespace lockstep::model_zoo::examples
