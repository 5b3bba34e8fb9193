// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/dataset.h"

namespace lockstep::data {

struct DataOptions;

/// Where a sample to predict comes from.
struct InputPlace {
  std::string path;
  std::int64_t row = 0;  ///< of the file, where Inputs::row_title() says that a file holds several samples
};

/// Samples to predict. They have no targets: get() writes 0 for one.
class Inputs : public Dataset {
 public:
  std::int64_t classes() const final { return 0; }
  Shape target_shape() const final { return {1}; }
  void get(const SampleKey& key, const Sample& sample) const final {
    read(key.index, sample);
    sample.target[0] = 0;
  }

  virtual InputPlace place(std::int64_t index) const = 0;
  /// What a sample of a file is called that holds several: "row", "line". None where each file is one sample.
  virtual std::string_view row_title() const { return {}; }

 private:
  /// Writes the input alone. Throws StorageError that names the file where it cannot be read.
  virtual void read(std::int64_t index, const Sample& sample) const = 0;
};

/// The files that paths name, in their order. A folder stands for all files below it whose names end in one of
/// `endings` (".jpg", in any case), sorted; others there are passed over, and a warning counts them. Throws UsageError
/// for a path that is not there, for a file with another ending and for a folder without such files.
std::vector<std::string> input_files(std::span<const std::string> paths, std::span<const std::string_view> endings);

/// Inputs::row_title() of what open_inputs() gives for such a model.
std::string_view row_title_of(const DataOptions& options);

/// Whether samples of such a model are lines of text, tables' rows, so that they can be answered one by one.
bool takes_lines(const DataOptions& options);
/// A text of such lines as samples; of tables the first one names the columns, where the training files had a header.
std::shared_ptr<const Inputs> lines_as_inputs(const DataOptions& options, std::string text);

/// Opens files as samples for a model that was trained on the training data of `options`, whose preparation is known:
/// prepared as these were, but for the normalisation. Throws UsageError as input_files() does, and where files cannot
/// stand for such samples. A file that cannot be read is one sample, whose get() throws.
std::shared_ptr<const Inputs> open_inputs(const DataOptions& options, std::span<const std::string> paths);

}  // namespace lockstep::data
