// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs.h"

#include <fmt/format.h>

#include "runtime/base/error.h"
#include "runtime/data/array_inputs.h"
#include "runtime/data/image_inputs.h"
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

}  // namespace

std::string_view row_title_of(const DataOptions& options) {
  return std::visit(
      []<class Options>(const Options&) {
        return CropsImages<Options> ? ImageInputs::kRowTitle : ArrayInputs::kRowTitle;
      },
      options.train);
}

std::shared_ptr<const Inputs> open_inputs(const DataOptions& options, std::span<const std::string> paths) {
  const Description& trained = options.prepared.value().trained;
  if (!trained.more_inputs.empty()) {
    throw UsageError("--input: the model takes several inputs, " + trained.inputs_text() + ", and a file holds one",
                     "Predict a data set of the job with --data, or call the model from a program.");
  }
  const auto open = [&]<class Options>(const Options& train) -> std::shared_ptr<const Inputs> {
    if constexpr (CropsImages<Options>) {
      return std::make_shared<ImageInputs>(input_files(paths, ImageInputs::kEndings), crop_of(train));
    } else {
      return std::make_shared<ArrayInputs>(input_files(paths, ArrayInputs::kEndings), trained.inputs().front(),
                                           OfBytes<Options>);
    }
  };
  return std::visit(open, options.train);
}

}  // namespace lockstep::data
