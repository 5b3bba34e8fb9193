// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/data/description.h"
#include "runtime/init/find_data.h"
#include "runtime/init/measure.h"
#include "runtime/init/recipe.h"

namespace lockstep::init {

struct JobTextOptions {
  std::string name;            ///< of the job
  std::filesystem::path base;  ///< the folder that the job will lie in: paths are relative to it
  std::string file;            ///< the job's, as commands name it
  std::int64_t epochs = 0;     ///< 0: the recipe's
  std::int64_t damaged = 0;    ///< samples that cannot be read, which the job leaves out
};

/// A commented job that trains the recipe on the data. `data`: the training samples without those that are held out;
/// `measured`: of all.
std::string job_text(const FoundData& found, const data::Description& data, const std::optional<Measured>& measured,
                     const Recipe& recipe, const JobTextOptions& options);

}  // namespace lockstep::init
