// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/manifest.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;

Manifest sample() {
  return {12345678901234567890ull,
          {{"state.pb", {3, "0123456789abcdef0123456789abcdef"}}},
          {{"a.b", {0, "00"}}, {"checksum", {7, "\"quoted\""}}}};
}

/// `body` with the checksum field that makes it a manifest.
std::string sealed(const std::string& body) {
  return body + ",\n  \"checksum\": \"" + digest_of(std::as_bytes(std::span(body))).checksum + "\"\n}\n";
}

std::string manifest_error(const std::string& text) {
  try {
    parse_manifest(text, "dir/manifest.json");
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("dir/manifest.json"));
    return error.what();
  }
  return "accepted";
}

TEST(ManifestText, GivesBackWhatWasWritten) {
  EXPECT_EQ(parse_manifest(format_manifest(sample()), "m"), sample());
  EXPECT_EQ(parse_manifest(format_manifest({}), "m"), Manifest{});
}

TEST(ManifestText, WithAnyByteChangedIsRefused) {
  const std::string text = format_manifest(sample());
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = changed[at] == ' ' ? '\t' : ' ';
    EXPECT_THAT(manifest_error(changed), HasSubstr("is damaged"));
    EXPECT_THAT(manifest_error(text.substr(0, at)), HasSubstr("is damaged"));
  }
  EXPECT_THAT(manifest_error(text + "\n"), HasSubstr("is damaged"));
}

TEST(ManifestText, ThatIsSealedButWrongIsRefused) {
  const std::string head = R"({"format": "lockstep checkpoint", "version": 1, "step": 1, "tensors": {}, "files": )";
  EXPECT_EQ(manifest_error(sealed(head + "{}")), "accepted");
  EXPECT_THAT(manifest_error(sealed(head + "[]")), HasSubstr("is malformed"));
  EXPECT_THAT(manifest_error(sealed(head + R"({"a": {"bytes": -1, "xxh3_128": ""}})")), HasSubstr("is malformed"));
  EXPECT_THAT(manifest_error(sealed(head + R"({"a": {"bytes": 1}})")), HasSubstr("is malformed"));
  EXPECT_THAT(manifest_error(sealed(head + R"({"a": {}, "a": {}})")), HasSubstr("has the key \"a\" twice"));
  EXPECT_THAT(manifest_error(sealed(head + R"({}, "step": 2)")), HasSubstr("has the key \"step\" twice"));
  EXPECT_THAT(manifest_error(sealed(head + "{{}")), HasSubstr("is malformed"));
  EXPECT_THAT(manifest_error(sealed(R"({"format": "other", "version": 1)")),
              HasSubstr("is not a checkpoint's manifest"));
  EXPECT_THAT(manifest_error(sealed(R"({"format": "lockstep checkpoint", "version": 9)")),
              HasSubstr("format version 9"));
  EXPECT_THAT(manifest_error(sealed(R"({"step": 1)")), HasSubstr("is malformed"));
  EXPECT_THAT(manifest_error(sealed("[1")), HasSubstr("is malformed"));
}

// A parser that takes the square of their number would need minutes.
TEST(ManifestText, MayListManyTensors) {
  Manifest manifest = sample();
  for (int i = 0; i < 100'000; ++i) manifest.tensors["tensor" + std::to_string(i)] = {8, "00"};
  EXPECT_EQ(parse_manifest(format_manifest(manifest), "x").tensors.size(), manifest.tensors.size());
}

TEST(ManifestText, OfADepthBombIsRefused) {
  EXPECT_THAT(manifest_error(sealed("{\"files\": " + std::string(1'000'000, '['))), HasSubstr("is nested too deeply"));
}

}  // namespace
}  // namespace lockstep::checkpoint
