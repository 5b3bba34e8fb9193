// SPDX-License-Identifier: Apache-2.0
// fuzz_seeds FOLDER: writes each parser's seeds as FOLDER/PARSER/NUMBER, where libFuzzer reads them.
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

void write(const std::filesystem::path& folder, const std::vector<std::string>& seeds) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::ofstream(folder / std::to_string(i), std::ios::binary) << seeds[i];
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder(argv[1]);
  for (const lockstep::fuzz::NamedTarget& target : lockstep::fuzz::all_targets()) {
    write(folder / target.name, target.make().seeds);
  }
  return 0;
}
