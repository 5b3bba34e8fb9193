// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/data/make_dataset.h"
#include "runtime/init/find_data.h"

namespace lockstep::init {

/// The data set as a job names it: "idx { images: ... labels: ... }", with paths relative to `base`. For those that
/// find_data() finds.
std::string dataset_text(const data::DatasetOptions& options, const std::filesystem::path& base);
/// The same with a line a field, indented by two levels; behind a field stands the reason for it as a comment.
std::string explained_dataset_text(const data::DatasetOptions& options, const std::filesystem::path& base,
                                   const std::vector<Reason>& reasons);

/// A path as a job's text has it: in quotes, relative to `base`.
std::string path_text(const std::filesystem::path& path, const std::filesystem::path& base);

}  // namespace lockstep::init
