// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

const std::string kSafetensorsHeader =
    R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}})";
const std::string kSafetensorsData(9, '\1');

/// The header behind its length in 8 bytes, and the tensors' bytes.
std::string safetensors_file(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(header.size() >> shift & 0xff);
  return bytes + header + data;
}

std::vector<std::string> safetensors_seeds() {
  return {safetensors_file(kSafetensorsHeader, kSafetensorsData), kSafetensorsHeader};
}

/// As a file, and as the header of one behind its right length.
void fuzz_safetensors(std::string_view bytes) {
  const std::string behind_length = safetensors_file(std::string(bytes), kSafetensorsData);
  for (const std::string_view content : {bytes, std::string_view(behind_length)}) {
    with_file(content, [](const std::string& path) {
      const checkpoint::SafetensorsFile file(path);
      for (const checkpoint::TensorEntry& entry : file.tensors()) file.read(entry);
    });
  }
}

}  // namespace

Target safetensors_target() { return {.parse = fuzz_safetensors, .seeds = safetensors_seeds()}; }

}  // namespace lockstep::fuzz
