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
  for (const std::string& pickle : pickle_seeds()) {
    EXPECT_NO_THROW(checkpoint::Pickle(
        pickle, "data.pkl", {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch FloatStorage"}))
        << "the seed itself is one";
    run_mutations(pickle, [](const std::string& text) { fuzz_torch(text); });
  }
}

TEST(Mutations, OfAnArchiveOfTensorsNeverHarm) {
  for (const std::string& archive : torch_seeds()) {
    with_file(archive, [](const std::string& path) {
      EXPECT_EQ(checkpoint::read_torch_file(path).size(), 1u) << "the seed itself is one";
    });
    run_mutations(
        archive, [](const std::string& text) { fuzz_torch(text); }, 10'000);
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
  // Deeper than a stack.
  fuzz_byte_pairs("\n{\"a\":" + std::string(1 << 20, '[') + std::string(1 << 20, ']') + "}");
}

TEST(Mutations, OfAnImageNeverHarm) {
  for (const std::string& file : image_seeds()) run_mutations(file, [](const std::string& text) { fuzz_image(text); });
}

TEST(Mutations, OfAVolumeNeverHarm) {
  for (const std::string& file : nifti_seeds()) run_mutations(file, [](const std::string& text) { fuzz_nifti(text); });
}

TEST(Mutations, OfAShardNeverHarm) {
  for (const std::string& file : shards_seeds()) {
    EXPECT_EQ(with_tar_checksums(file), file) << "the seed's are right";
    run_mutations(
        file, [](const std::string& text) { fuzz_shards(text); }, 10'000);
  }
}

TEST(Mutations, OfAFileOfCifarNeverHarm) {
  for (const std::string& file : cifar_seeds()) {
    run_mutations(
        file, [](const std::string& text) { fuzz_cifar(text); }, 3'000);
  }
}

TEST(Mutations, OfTensorBoardsEventsNeverHarm) {
  for (const std::string& event : events_seeds()) {
    EXPECT_EQ(tf_records_in(tf_record(event)).size(), 1u);
    run_mutations(event, [](const std::string& text) { fuzz_events(text); });
  }
}

TEST(Mutations, OfTheRecordOfARunNeverHarm) {
  for (const std::string& record : run_record_seeds()) {
    run_mutations(
        record, [](const std::string& text) { fuzz_run_record(text); }, 3'000);
  }
  // Deeper than a stack.
  const std::string deep = std::string(1 << 18, '[') + std::string(1 << 18, ']');
  fuzz_run_record(R"({"event":"eval","step":1,"x":)" + deep + "}");
  fuzz_run_record(R"({"event":)" + deep + R"(,"step":1,"status":"failed"})");
  fuzz_run_record(R"({"status":"failed","error":)" + deep + "}");
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
