// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/folder.h"

namespace lockstep::train {

/// Runs whose files a test writes.
class History : public testing::Test {
 protected:
  static void write(const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  static void append(const std::filesystem::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::app) << text;
  }
  static std::string step(int step, double loss, double time = 1000.0) {
    return "{\"step\":" + std::to_string(step) + ",\"time\":" + std::to_string(time + step) +
           ",\"loss\":" + std::to_string(loss) + ",\"lr\":0.1,\"skipped\":false,\"samples_per_s\":100}\n";
  }
  static std::string eval(int step, double accuracy) {
    return "{\"event\":\"eval\",\"step\":" + std::to_string(step) +
           ",\"time\":1000,\"samples\":9,\"loss\":0.5,\"accuracy\":" + std::to_string(accuracy) + "}\n";
  }
  static std::string event(const std::string& name, int step, const std::string& more = "") {
    return "{\"event\":\"" + name + "\",\"step\":" + std::to_string(step) + ",\"time\":2000" + more + "}\n";
  }
  static std::string job(const std::string& lr, const std::string& name = "job") {
    return "name: \"" + name + "\" model { mlp { hidden: 8 } } optimizer { sgd { lr: " + lr +
           " } } train { steps: 40 }";
  }

  Folder folder_;
};

}  // namespace lockstep::train
