// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "runtime/data/make_dataset.h"

namespace lockstep::init {

/// The data set as a job names it: "idx { images: ... labels: ... }", with paths relative to `base`. For those that
/// find_data() finds.
std::string dataset_text(const data::DatasetOptions& options, const std::filesystem::path& base);

}  // namespace lockstep::init
