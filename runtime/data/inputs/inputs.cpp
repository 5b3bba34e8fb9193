// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/inputs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/data/inputs/array_inputs.h"
#include "runtime/data/inputs/image_inputs.h"
#include "runtime/data/inputs/svmlight_inputs.h"
#include "runtime/data/inputs/table_inputs.h"
#include "runtime/data/make_dataset.h"

namespace lockstep::data {

namespace {

template <class Options>
concept CropsImages = requires(const Options& options) {
  options.random_resized_crop;
};

/// Whether samples are bytes in their files and shares of 255 for the model.
template <class Options>
concept OfBytes = std::same_as<Options, IdxOptions> || std::same_as<Options, CifarOptions>;

const TableEncoding& table_of(const DataOptions& options) {
  if (options.prepared->table) return *options.prepared->table;
  throw UsageError("--input: the run does not know how its table was encoded",
                   "Name its job, whose training data say so, in the run's place.");
}

}  // namespace

std::string_view row_title_of(const DataOptions& options) {
  return std::visit(
      []<class Options>(const Options&) {
        if (std::same_as<Options, CsvOptions>) return TableInputs::kRowTitle;
        if (std::same_as<Options, SvmlightOptions>) return SvmlightInputs::kRowTitle;
        return CropsImages<Options> ? ImageInputs::kRowTitle : ArrayInputs::kRowTitle;
      },
      options.train);
}

bool takes_lines(const DataOptions& options) { return std::holds_alternative<CsvOptions>(options.train); }

std::shared_ptr<const Inputs> lines_as_inputs(const DataOptions& options, std::string text) {
  return std::make_shared<TableInputs>(table_of(options), std::move(text), "-");
}

std::shared_ptr<const Inputs> open_inputs(const DataOptions& options, std::span<const std::string> paths) {
  if (std::ranges::find(paths, "-") != paths.end()) {
    throw UsageError("--input -: stdin stands alone", "Give files, or lines on stdin.");
  }
  const Description& trained = options.prepared.value().trained;
  if (!trained.more_inputs.empty() && !takes_lines(options)) {
    throw UsageError("--input: the model takes several inputs, " + trained.inputs_text() + ", and a file holds one",
                     "Predict a data set of the job with --data, or call the model from a program.");
  }
  const auto open = [&]<class Options>(const Options& train) -> std::shared_ptr<const Inputs> {
    if constexpr (std::same_as<Options, CsvOptions>) {
      return std::make_shared<TableInputs>(table_of(options), input_files(paths, TableInputs::kEndings));
    } else if constexpr (std::same_as<Options, SvmlightOptions>) {
      return std::make_shared<SvmlightInputs>(input_files(paths, SvmlightInputs::kEndings), trained.sample_shape[0],
                                              train.zero_based);
    } else if constexpr (CropsImages<Options>) {
      return std::make_shared<ImageInputs>(input_files(paths, ImageInputs::kEndings), crop_of(train));
    } else {
      return std::make_shared<ArrayInputs>(input_files(paths, ArrayInputs::kEndings), trained.inputs().front(),
                                           OfBytes<Options>);
    }
  };
  return std::visit(open, options.train);
}

}  // namespace lockstep::data
