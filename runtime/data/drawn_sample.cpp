// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/drawn_sample.h"

#include <cstddef>
#include <span>

#include "runtime/base/hash.h"

namespace lockstep::data {

namespace {

std::size_t count(bool has, std::int64_t elements) { return has ? static_cast<std::size_t>(elements) : 0; }

void add(const auto& numbers, Hash128& hash) { hash.update(std::as_bytes(std::span(numbers))); }

}  // namespace

DrawnSample::DrawnSample(const Dataset& set)
    : more(set.more_inputs().size()),
      values(count(set.vocabulary() == 0, set.sample_shape().numel())),
      tokens(count(set.vocabulary() > 0, set.sample_shape().numel())),
      target(count(set.classes() == 0, set.target_shape().numel())),
      labels(count(set.classes() > 0, set.target_shape().numel())),
      weight(count(set.weighted() || set.mixed(), 1)),
      other_label(count(set.mixed(), 1)),
      other_weight(count(set.mixed(), 1)) {
  const std::vector<InputSpec> specs = set.more_inputs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    more[i].values.resize(count(specs[i].vocabulary == 0, specs[i].shape.numel()));
    more[i].tokens.resize(count(specs[i].vocabulary > 0, specs[i].shape.numel()));
    rows.push_back({more[i].values, more[i].tokens});
  }
}

void DrawnSample::add_inputs(Hash128& hash) const {
  add(values, hash);
  add(tokens, hash);
  for (const Input& input : more) {
    add(input.values, hash);
    add(input.tokens, hash);
  }
}

void DrawnSample::add_targets(Hash128& hash) const {
  add(target, hash);
  add(labels, hash);
  add(weight, hash);
  add(other_label, hash);
  add(other_weight, hash);
}

}  // namespace lockstep::data
