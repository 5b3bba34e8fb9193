// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/init/find_data.h"
#include "tests/runtime/data/image_files.h"

namespace lockstep::init {

/// Looks for data in a folder of its own.
class FindDataTest : public ::testing::Test {
 protected:
  FoundData find(const std::vector<std::string>& names, const FindOptions& options = {}) const {
    std::vector<std::filesystem::path> paths;
    for (const std::string& name : names) paths.emplace_back(folder_.path(name));
    return find_data(paths, options);
  }
  std::string refusal(const std::vector<std::string>& names, const FindOptions& options = {}) const {
    try {
      find(names, options);
    } catch (const UsageError& error) {
      return std::string(error.what()) + " " + error.advice();
    }
    return "no error";
  }
  void make(const std::string& name) const { std::filesystem::create_directories(folder_.path(name)); }
  std::string at(const std::string& name) const { return folder_.path(name); }

  data::TemporaryFolder folder_;
};

}  // namespace lockstep::init
