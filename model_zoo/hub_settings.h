// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace lockstep::model_zoo {

/// How a setting of transformers' config.json bears on a job's model.
enum class Bearing {
  kSize,      ///< it shapes tensors, and those tell it themselves
  kNumbers,   ///< the same tensors compute other numbers with it
  kTie,       ///< two weights are one; it counts only where one of them is taken from the file
  kGiven,     ///< kNumbers, where the job says something
  kWindow,    ///< a least number for the job's field, or none
  kTraining,  ///< it counts while the model trains: dropout
  kStart,     ///< of initial values
};

struct HubSetting {
  std::string_view name;   ///< in config.json; hub_rope.h says what of rotary positions
  std::string_view field;  ///< the job's; empty: the model has this in one way
  Bearing bearing = Bearing::kNumbers;
  std::string_view words = {};   ///< what the field is; without a field what to do where the value is another
  std::string_view values = {};  ///< without a field: a JSON list of those that the model computes, its own one first
};

/// A type of transformers' models: its settings in config.json, and the job's model that computes the same.
struct HubFamily {
  std::string_view type;      ///< "model_type"
  std::string_view model;     ///< its name in a job
  std::string_view defaults;  ///< a JSON object: transformers' values of settings that a file leaves out
  std::span<const HubSetting> settings;
};

/// All that are known, the one that is written for a model before others of it.
std::span<const HubFamily> hub_families();

/// The first whose `type` or `model`, as `by` says, is this one; null where none is.
const HubFamily* find_family(std::string_view HubFamily::*by, std::string_view name);

}  // namespace lockstep::model_zoo
