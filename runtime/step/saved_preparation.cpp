// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/saved_preparation.h"

#include <span>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"

namespace lockstep::step {

namespace {

using Extents = google::protobuf::RepeatedField<std::int64_t>;

void save(const Shape& shape, Extents& saved) {
  for (const std::int64_t extent : shape.extents()) saved.Add(extent);
}

/// Shapes have few extents, whose product a file must not overflow.
Shape shape_of(const Extents& saved, const std::string& file) {
  constexpr std::int64_t kMostElements = std::int64_t{1} << 40;
  std::int64_t elements = 1;
  bool sound = saved.size() <= 8;
  for (const std::int64_t extent : saved) {
    sound = sound && extent >= 0 && extent <= kMostElements / std::max<std::int64_t>(elements, 1);
    if (sound) elements *= extent;
  }
  if (!sound) throw StorageError(file + " has the shape of a sample that nothing can have");
  return Shape(std::span<const std::int64_t>(saved.data(), static_cast<std::size_t>(saved.size())));
}

}  // namespace

void save_preparation(const data::Preparation& preparation, checkpoint::TrainingState& state) {
  checkpoint::Preparation& saved = *state.mutable_preparation();
  const data::Description& trained = preparation.trained;
  saved.set_samples(trained.samples);
  for (const InputSpec& input : trained.inputs()) {
    checkpoint::Preparation::Input& entry = *saved.add_input();
    save(input.shape, *entry.mutable_shape());
    entry.set_vocabulary(input.vocabulary);
  }
  saved.set_classes(trained.classes);
  save(trained.target_shape, *saved.mutable_target_shape());
  saved.set_targets_per_sample(trained.targets_per_sample);
  saved.set_weighted(trained.weighted);
  for (const std::string& name : preparation.class_names) saved.add_class_name(name);
  if (preparation.table) saved.set_table(data::json_text(*preparation.table));
  saved.set_target_summary(data::json_text(trained.target_summary));
  for (const data::TokenizerFile& file : preparation.tokenizer) {
    checkpoint::Preparation::File& entry = *saved.add_tokenizer();
    entry.set_name(file.name);
    entry.set_content(file.content);
  }
}

std::optional<data::Preparation> saved_preparation(const checkpoint::TrainingState& state, const std::string& file) {
  if (!state.has_preparation()) return std::nullopt;
  const checkpoint::Preparation& saved = state.preparation();
  if (saved.input_size() == 0 || saved.classes() < 0) throw StorageError(file + " does not say what samples are");
  data::Preparation preparation;
  data::Description& trained = preparation.trained;
  trained.samples = saved.samples();
  for (const checkpoint::Preparation::Input& entry : saved.input()) {
    trained.more_inputs.push_back({shape_of(entry.shape(), file), entry.vocabulary()});
  }
  trained.sample_shape = trained.more_inputs.front().shape;
  trained.vocabulary = trained.more_inputs.front().vocabulary;
  trained.more_inputs.erase(trained.more_inputs.begin());
  trained.classes = saved.classes();
  trained.target_shape = shape_of(saved.target_shape(), file);
  trained.targets_per_sample = saved.targets_per_sample();
  trained.weighted = saved.weighted();
  preparation.class_names.assign(saved.class_name().begin(), saved.class_name().end());
  if (!saved.table().empty()) preparation.table = data::encoding_in(saved.table(), file + ": the table's encoding");
  if (!saved.target_summary().empty()) {
    trained.target_summary = data::target_summary_in(saved.target_summary(), file + ": the targets' summary");
  }
  for (const checkpoint::Preparation::File& entry : saved.tokenizer()) {
    preparation.tokenizer.push_back({entry.name(), entry.content()});
  }
  return preparation;
}

}  // namespace lockstep::step
