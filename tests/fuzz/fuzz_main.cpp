// SPDX-License-Identifier: Apache-2.0
// The program of all fuzz targets: libFuzzer calls the parser whose NAME the program is called by, NAME_fuzz.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

void (*parse)(std::string_view bytes) = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char*** argv) {
  const std::string path = **argv;
  const std::string program = path.substr(path.rfind('/') + 1);
  const std::vector<lockstep::fuzz::NamedTarget>& targets = lockstep::fuzz::all_targets();
  const auto named = std::find_if(targets.begin(), targets.end(), [&](const lockstep::fuzz::NamedTarget& target) {
    return program == std::string(target.name) + "_fuzz";
  });
  if (named == targets.end()) {
    std::fprintf(stderr, "%s names no parser: call NAME_fuzz beside it, as in job_fuzz\n", program.c_str());
    std::exit(2);
  }
  parse = named->make().parse;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  parse({reinterpret_cast<const char*>(data), size});
  return 0;
}
