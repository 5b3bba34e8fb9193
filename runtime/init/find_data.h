// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/data/make_dataset.h"

namespace lockstep::init {

/// The user's choices for the data that are looked at.
struct FindOptions {
  std::string target = {};               ///< the column of a table to learn; none: the last one
  std::int64_t context = 128;            ///< tokens of a sample, fewer where a text is short
  bool hides_tokens = false;             ///< of texts: the targets are tokens that a sample hides
  std::filesystem::path tokenizer = {};  ///< a folder whose vocabulary encodes texts that have none beside them
};

/// Why a job says what it says in a field of its training data.
struct Reason {
  std::string field;  ///< "blanks"
  std::string text;
};

/// A data set as a job would name it.
struct FoundData {
  std::string what;                     ///< "images, a folder a class"
  data::DataOptions options;            ///< not normalised, augmented by a patch alone, nothing held out
  std::vector<std::string> notes = {};  ///< what a person should know of it, a sentence each
  std::vector<Reason> reasons = {};     ///< where there are some, a job explains the training data field by field
  bool masks = false;                   ///< targets are numbers in [0, 1], one a position
};

/// Looks at one folder, or at the files of one data set. Throws UsageError that lists what it looked for, and
/// StorageError for what cannot be read.
FoundData find_data(const std::vector<std::filesystem::path>& paths, const FindOptions& options);

}  // namespace lockstep::init
