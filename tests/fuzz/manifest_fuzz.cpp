// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/manifest.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// Manifests without their last field, the checksum.
std::vector<std::string> manifest_seeds() {
  const std::string text = checkpoint::format_manifest({7, {{"state.pb", {3, "ab"}}}, {{"w", {4, "cd"}}}});
  return {text.substr(0, text.rfind(",\n  \"checksum\""))};
}

/// Both as they come and behind a checksum that fits, since without one nearly nothing reaches the JSON parser.
void fuzz_manifest(std::string_view bytes) {
  const std::string sealed = std::string(bytes) + ",\n  \"checksum\": \"" +
                             checkpoint::digest_of(std::as_bytes(std::span(bytes))).checksum + "\"\n}\n";
  for (const std::string_view text : {bytes, std::string_view(sealed)}) {
    try {
      checkpoint::parse_manifest(text, "manifest.json");
    } catch (const StorageError&) {
    }
  }
}

}  // namespace

Target manifest_target() { return {.parse = fuzz_manifest, .seeds = manifest_seeds()}; }

}  // namespace lockstep::fuzz
