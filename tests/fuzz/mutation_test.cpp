// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "tests/fuzz/fuzz_entries.h"
#include "tests/fuzz/seeds.h"

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

TEST(Mutations, OfASafetensorsFileNeverHarm) {
  for (const std::string& file : safetensors_seeds()) {
    run_mutations(file, [](const std::string& text) { fuzz_safetensors(text); });
  }
}

TEST(Mutations, OfASafetensorsHeaderBehindItsRightLengthNeverHarm) {
  run_mutations(kSafetensorsHeader,
                [](const std::string& header) { fuzz_safetensors(safetensors_file(header, kSafetensorsData)); });
}

TEST(Mutations, OfAPickleNeverHarm) {
  for (const std::string& pickle : torch_seeds()) {
    EXPECT_NO_THROW(checkpoint::Pickle(
        pickle, "data.pkl", {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch FloatStorage"}))
        << "the seed itself is one";
    run_mutations(pickle, [](const std::string& text) { fuzz_torch(text); });
  }
}

TEST(Mutations, OfAManifestNeverHarm) {
  for (const std::string& body : manifest_seeds()) {
    run_mutations(body, [](const std::string& text) { fuzz_manifest(text); });
  }
}

TEST(Mutations, OfAnIdxFileNeverHarm) {
  for (const std::string& file : idx_seeds()) run_mutations(file, [](const std::string& text) { fuzz_idx(text); });
}

TEST(Mutations, OfAnArrayNeverHarm) {
  for (const std::string& file : npy_seeds()) run_mutations(file, [](const std::string& text) { fuzz_npy(text); });
}

TEST(Mutations, OfATableNeverHarm) {
  for (const std::string& file : csv_seeds()) {
    run_mutations(
        file, [](const std::string& text) { fuzz_csv(text); }, 10'000);
  }
}

TEST(Mutations, OfTokensNeverHarm) {
  for (const std::string& file : tokens_seeds())
    run_mutations(file, [](const std::string& text) { fuzz_tokens(text); });
}

TEST(Mutations, OfAVocabularyNeverHarm) {
  for (const std::string& file : byte_pairs_seeds()) {
    run_mutations(
        file, [](const std::string& text) { fuzz_byte_pairs(text); }, 10'000);
  }
}

TEST(Mutations, OfAnImageNeverHarm) {
  for (const std::string& file : image_seeds()) run_mutations(file, [](const std::string& text) { fuzz_image(text); });
}

TEST(Mutations, OfAVolumeNeverHarm) {
  for (const std::string& file : nifti_seeds()) run_mutations(file, [](const std::string& text) { fuzz_nifti(text); });
}

/// With checksums that fit, since without one nothing behind a header's is reached.
TEST(Mutations, OfAShardNeverHarm) {
  for (const std::string& file : shards_seeds()) {
    const auto mend_and_read = [](std::string text) {
      for (std::size_t at = 0; at + 512 <= text.size(); at += 512) {
        if (text.compare(at + 257, 5, "ustar") != 0) continue;
        text.replace(at + 148, 8, 8, ' ');
        unsigned sum = 0;
        for (std::size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(text[i]);
        for (std::size_t digit = at + 154; digit > at + 148; sum /= 8) text[--digit] = static_cast<char>('0' + sum % 8);
        text[at + 154] = '\0';
      }
      fuzz_shards(text);
    };
    EXPECT_NO_THROW(mend_and_read(file));
    run_mutations(file, mend_and_read, 10'000);
  }
}

TEST(Mutations, OfTheStateOfAScalerNeverHarm) {
  for (const std::string& state : scaler_seeds()) {
    run_mutations(state, [](const std::string& text) { fuzz_scaler(text); });
  }
  // Deeper than a stack.
  fuzz_scaler(R"({"scale":)" + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}");
}

TEST(Mutations, OfTheStateOfARunNeverHarm) {
  for (const std::string& state : state_seeds()) {
    run_mutations(state, [](const std::string& bytes) { fuzz_state(bytes); });
  }
  // Groups deeper than a stack, in fields that are not known.
  fuzz_state(std::string(1 << 20, '\xcb'));
}

TEST(Mutations, OfFramesBetweenRanksNeverHarm) {
  for (const std::string& frames : tcp_seeds()) {
    run_mutations(
        frames, [](const std::string& text) { fuzz_tcp(text); }, 10'000);
  }
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
