// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/data/description.h"
#include "runtime/data/table_encoding.h"
#include "runtime/data/tokenizer_files.h"

namespace lockstep::data {

class Dataset;
struct DataOptions;

/// What is known of the training data alone. With it and a job's data section, other samples are prepared as the
/// training samples were, although these are gone.
struct Preparation {
  Description trained = {};                   ///< without labels; samples as training has them, patches of volumes
  std::vector<std::string> class_names = {};  ///< in the order of the classes; none where they are numbers
  std::optional<TableEncoding> table = {};    ///< of a CSV table's lines
  TokenizerFiles tokenizer = {};              ///< of texts; names without folders

  bool operator==(const Preparation&) const = default;
};

/// The preparation of training data that are open. Throws StorageError where a file of the tokenizer cannot be read.
Preparation preparation_of(const DataOptions& options, const Dataset& train);

/// Makes the options those of a model whose training data are known by their preparation: what evaluation data would
/// take from the training data comes from there, and describe() tells of the training data without their files.
void prepare(DataOptions& options, Preparation preparation);

}  // namespace lockstep::data
