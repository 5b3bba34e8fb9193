// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/array_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace lockstep::data {

namespace {

/// How many samples an array holds.
std::int64_t samples_in(const NpyArray& array, const InputSpec& spec) {
  const bool whole_numbers = array.kind() == NpyArray::Kind::kSigned || array.kind() == NpyArray::Kind::kUnsigned;
  if (spec.vocabulary > 0 && !whole_numbers) {
    throw UsageError(
        fmt::format("--input {}: tokens are integers, found elements of type '{}'", array.path(), array.dtype()));
  }
  const std::span<const std::int64_t> extents(array.extents());
  if (std::ranges::equal(extents, spec.shape.extents())) return 1;
  if (!extents.empty() && std::ranges::equal(extents.subspan(1), spec.shape.extents())) return extents.front();
  // A column of numbers is samples of one.
  if (extents.size() == 1 && spec.shape == Shape{1}) return extents.front();
  throw UsageError(fmt::format("--input {}: an array [{}], but the model takes samples of {}", array.path(),
                               fmt::join(extents, ", "), spec.str()),
                   "Give an array of that shape, or of N such samples; channels come last.");
}

}  // namespace

ArrayInputs::ArrayInputs(const std::vector<std::string>& files, const InputSpec& spec, bool of_bytes)
    : spec_(spec), of_bytes_(of_bytes) {
  for (const std::string& file : files) {
    Part part{.path = file, .first = size_};
    std::int64_t samples = 1;
    try {
      part.array.emplace(file);
      samples = samples_in(*part.array, spec_);
    } catch (const UsageError& error) {
      // Beside others it is one that cannot be read.
      if (files.size() == 1) throw;
      part.failure = error.what();
    } catch (const StorageError& error) {
      part.failure = error.what();
    }
    size_ += samples;
    if (samples > 0) parts_.push_back(std::move(part));
  }
}

const ArrayInputs::Part& ArrayInputs::part_of(std::int64_t index) const {
  return *std::prev(std::ranges::upper_bound(parts_, index, {}, &Part::first));
}

InputPlace ArrayInputs::place(std::int64_t index) const {
  const Part& part = part_of(index);
  return {part.path, index - part.first};
}

void ArrayInputs::read(std::int64_t index, const Sample& sample) const {
  const Part& part = part_of(index);
  if (!part.array) throw StorageError(part.failure);
  const std::int64_t first = (index - part.first) * spec_.shape.numel();
  if (spec_.vocabulary == 0) {
    part.array->read(first, sample.values);
    if (!of_bytes_ || part.array->kind() == NpyArray::Kind::kFloat) return;
    for (float& value : sample.values) value *= 1.0f / 255.0f;
    return;
  }
  part.array->read(first, sample.tokens);
  const auto outside =
      std::ranges::find_if(sample.tokens, [this](std::int64_t t) { return t < 0 || t >= spec_.vocabulary; });
  if (outside == sample.tokens.end()) return;
  throw StorageError(fmt::format("{}: token {} of row {} is outside the vocabulary of {}", part.path, *outside,
                                 index - part.first, spec_.vocabulary));
}

}  // namespace lockstep::data
