// SPDX-License-Identifier: Apache-2.0
// A fuzz target's program: libFuzzer calls the one parser that CMake names.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

Target LOCKSTEP_FUZZ_TARGET();

}  // namespace lockstep::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const lockstep::fuzz::Target target = lockstep::fuzz::LOCKSTEP_FUZZ_TARGET();
  target.parse({reinterpret_cast<const char*>(data), size});
  return 0;
}
