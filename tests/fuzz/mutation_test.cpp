// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/fuzz_entries.h"

namespace lockstep::fuzz {
namespace {

/// Changes `text` in one of the ways that parsers stumble over.
void mutate(std::string& text, std::mt19937& random) {
  static const std::vector<std::string> kPieces = {"{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   "\"",
                                                   ",",
                                                   ":",
                                                   "-1",
                                                   "1e9",
                                                   "null",
                                                   "true",
                                                   "18446744073709551615",
                                                   "9223372036854775807",
                                                   "\\u0000",
                                                   "\xff",
                                                   "\"shape\"",
                                                   "\"__metadata__\"",
                                                   "\"dtype\":\"F64\"",
                                                   "mlp{",
                                                   "<",
                                                   "0x",
                                                   "'",
                                                   " "};
  const auto below = [&](std::size_t limit) { return limit == 0 ? 0 : random() % limit; };
  const std::size_t at = below(text.size() + 1);
  const std::size_t length = below(std::min<std::size_t>(text.size() - at, 24) + 1);
  switch (random() % 5) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random() % 8));
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(below(text.size() + 1), length));
      break;
    case 3:
      text.insert(at, kPieces[below(kPieces.size())]);
      break;
    default:
      text.replace(at, length, kPieces[below(kPieces.size())]);
  }
}

template <class Entry>
void run_mutations(const std::string& seed, Entry&& entry, int rounds = 30'000) {
  std::mt19937 random(12345);
  for (int round = 0; round < rounds; ++round) {
    std::string text = seed;
    for (unsigned count = 1 + random() % 4; count > 0; --count) mutate(text, random);
    entry(text);
  }
}

std::string length_prefix(std::size_t length) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(length >> shift & 0xff);
  return bytes;
}

const std::string kHeader = R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}})";
const std::string kData(9, '\1');

TEST(Mutations, OfASafetensorsFileNeverHarm) {
  run_mutations(length_prefix(kHeader.size()) + kHeader + kData,
                [](const std::string& text) { fuzz_safetensors(text); });
}

TEST(Mutations, OfASafetensorsHeaderBehindItsRightLengthNeverHarm) {
  run_mutations(kHeader,
                [](const std::string& header) { fuzz_safetensors(length_prefix(header.size()) + header + kData); });
}

TEST(Mutations, OfAManifestNeverHarm) {
  const std::string text = checkpoint::format_manifest({7, {{"state.pb", {3, "ab"}}}, {{"w", {4, "cd"}}}});
  run_mutations(text.substr(0, text.rfind(",\n  \"checksum\"")), [](const std::string& body) { fuzz_manifest(body); });
}

TEST(Mutations, OfAnIdxFileNeverHarm) {
  const std::string images = std::string("\0\0\x08\x03", 4) + std::string("\0\0\0\2\0\0\0\2\0\0\0\2", 12) + "abcdefgh";
  const std::string labels = std::string("\0\0\x08\x01", 4) + std::string("\0\0\0\2", 4) + "\1\2";
  for (const std::string& file : {images, labels}) run_mutations(file, [](const std::string& text) { fuzz_idx(text); });
}

TEST(Mutations, OfFramesBetweenRanksNeverHarm) {
  using comm::OperationKind;
  std::string frames;
  for (const OperationKind kind : {OperationKind::kAllReduce, OperationKind::kReduceScatter, OperationKind::kBroadcast,
                                   OperationKind::kAllGather, OperationKind::kDuplicate, OperationKind::kLeave}) {
    const comm::FrameHeader header{.operation = {.kind = kind, .dtype = DType::kFloat32, .count = 2}, .bytes = 8};
    frames += std::string(reinterpret_cast<const char*>(&header), sizeof header) + "12345678";
  }
  run_mutations(
      frames, [](const std::string& text) { fuzz_tcp(text); }, 10'000);
}

TEST(Mutations, OfAJobNeverHarm) {
  std::ifstream file(LOCKSTEP_SOURCE_DIR "/configs/digits_convnet.pbtxt");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_FALSE(text.empty());
  run_mutations(
      text, [](const std::string& job) { fuzz_job(job); }, 3'000);
}

}  // namespace
}  // namespace lockstep::fuzz
