// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/nifti.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// A volume of 2 x 1 x 1 numbers of two bytes.
std::vector<std::string> nifti_seeds() {
  std::string bytes(352, '\0');
  bytes.replace(0, 2, "\x5c\x01");
  bytes.replace(40, 8, std::string("\3\0\2\0\1\0\1\0", 8));
  bytes.replace(70, 3, std::string("\4\0\x10", 3));
  bytes.replace(108, 12, std::string("\0\0\xb0\x43\0\0\0\x40\0\0\x80\x3f", 12));
  bytes.replace(344, 3, "n+1");
  return {bytes + std::string("\1\0\2\0", 4)};
}

/// What is taken of the volume is as large as its header says, which is bounded.
void fuzz_nifti(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) {
    const data::NiftiHeader header = data::read_nifti_header(path, 1 << 16);
    std::vector<float> values(static_cast<std::size_t>(header.shape.numel()));
    data::read_nifti(path, header, {0, header.shape[0]}, values);
  });
}

}  // namespace

Target nifti_target() { return {.parse = fuzz_nifti, .seeds = nifti_seeds()}; }

}  // namespace lockstep::fuzz
