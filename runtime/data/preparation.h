// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "runtime/data/description.h"

namespace lockstep::data {

class Dataset;
struct DataOptions;

/// A file that the preparation of samples reads, as a tokenizer's vocabulary.
struct SupportFile {
  std::string field;  ///< of the data set's options that names it: "vocab_file"
  std::string name;   ///< without its folders
  std::string content;

  bool operator==(const SupportFile&) const = default;
};

/// What is known of the training data alone. With it and a job's data section, other samples are prepared as the
/// training samples were, although these are gone.
struct Preparation {
  Description trained = {};                   ///< without labels; samples as training has them, patches of volumes
  std::vector<std::string> class_names = {};  ///< in the order of the classes; none where they are numbers
  std::vector<SupportFile> files = {};

  bool operator==(const Preparation&) const = default;
};

/// The preparation of training data that are open. Throws StorageError where a file of support cannot be read.
Preparation preparation_of(const DataOptions& options, const Dataset& train);

/// Makes the options those of a model whose training data are known by their preparation: what evaluation data would
/// take from the training data comes from there, and describe() tells of the training data without their files.
void prepare(DataOptions& options, Preparation preparation);

}  // namespace lockstep::data
