// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/fuzz_entries.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lockstep::fuzz::fuzz_run_record({reinterpret_cast<const char*>(data), size});
  return 0;
}
