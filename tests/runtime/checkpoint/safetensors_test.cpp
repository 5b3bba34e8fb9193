// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/safetensors.h"

#include <gmock/gmock.h>

#include "tests/runtime/checkpoint/checkpoint_support.h"

namespace lockstep::checkpoint {
namespace {

std::vector<NamedTensor> one_of_each_dtype() {
  return {{"f32", Tensor::from<float>({1.5f, -2, 0, 3e38f, 1e-45f, 6}, {2, 3})},
          {"f16", Tensor::from<Half>({Half(1), Half(-65504)}, {2})},
          {"bf16", Tensor::from<BFloat16>({BFloat16(3)}, {1, 1, 1})},
          {"f64", Tensor::from<double>({1e300}, {1})},
          {"i64", Tensor::from<std::int64_t>({-(std::int64_t{1} << 62), 5}, {2})},
          {"i32", Tensor::from<std::int32_t>({-7, 8, 9}, {3})},
          {"u8", Tensor::from<std::uint8_t>({0, 255, 1, 2, 3}, {5})},
          {"bool", Tensor::zeros({3}, DType::kBool)},
          {"scalar", Tensor::from<float>({42}, {})},
          {"empty", Tensor::empty({0, 4}, DType::kFloat32)},
          {"sp\u00e9cial \"name\"\n", Tensor::from<float>({1}, {1})}};
}

TEST(Safetensors, GivesBackEveryDtypeEmptyTensorsAndScalars) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "t.safetensors";
  const std::vector<NamedTensor> written = one_of_each_dtype();
  const SafetensorsDigest digest = write_safetensors(path, written, {{"format", "test"}, {"note", "a \"b\""}});
  const SafetensorsFile file(path);
  EXPECT_THAT(file.metadata(), testing::ElementsAre(std::pair("format", "test"), std::pair("note", "a \"b\"")));
  ASSERT_EQ(file.tensors().size(), written.size());
  std::map<std::string, Tensor> read;
  for (const TensorEntry& entry : file.tensors()) {
    read[entry.name] = file.read(entry);
    const Tensor& tensor = read[entry.name];
    EXPECT_EQ(digest.tensors.at(entry.name), digest_of({static_cast<const std::byte*>(tensor.data()), tensor.bytes()}));
  }
  for (const auto& [name, tensor] : written) EXPECT_TRUE(same_bytes(read.at(name), tensor)) << name;
  const std::string content = slurp(path);
  EXPECT_EQ(digest.file, digest_of(std::as_bytes(std::span(content))));
}

TEST(Safetensors, AlignsTheDataAndEveryTensorInIt) {
  const ScratchDirectory scratch;
  write_safetensors(scratch / "t", one_of_each_dtype());
  const SafetensorsFile file(scratch / "t");
  EXPECT_EQ(file.preamble().size() % 64, 0u);
  for (const TensorEntry& entry : file.tensors()) EXPECT_EQ(entry.begin % size_of(entry.dtype), 0u) << entry.name;
}

TEST(Safetensors, WritesTheSameBytesWhateverTheOrder) {
  const ScratchDirectory scratch;
  std::vector<NamedTensor> tensors = one_of_each_dtype();
  write_safetensors(scratch / "a", tensors);
  std::ranges::reverse(tensors);
  write_safetensors(scratch / "b", tensors);
  EXPECT_EQ(slurp(scratch / "a"), slurp(scratch / "b"));
}

TEST(Safetensors, WritesWhatTheFormatSays) {
  const ScratchDirectory scratch;
  write_safetensors(scratch / "t", {{"w", Tensor::from<std::uint8_t>({1, 2, 3}, {3})}}, {{"k", "v"}});
  const std::string json = R"({"__metadata__":{"k":"v"},"w":{"data_offsets":[0,3],"dtype":"U8","shape":[3]}})";
  const std::string header = json + std::string(128 - 8 - json.size(), ' ');
  EXPECT_EQ(slurp(scratch / "t"), std::string("\x78\0\0\0\0\0\0\0", 8) + header + "\1\2\3");
}

TEST(Safetensors, WritesMoreThanOneChunk) {
  const ScratchDirectory scratch;
  const Tensor large = Tensor::empty({3'000'001}, DType::kUInt8);
  for (std::int64_t i = 0; i < large.numel(); ++i)
    large.mutable_as<std::uint8_t>()[static_cast<std::size_t>(i)] = i * 31 & 255;
  write_safetensors(scratch / "t", {{"large", large}});
  const SafetensorsFile file(scratch / "t");
  EXPECT_TRUE(same_bytes(file.read(file.tensors()[0]), large));
}

TEST(Safetensors, RefusesNamesItCannotKeep) {
  const ScratchDirectory scratch;
  const Tensor one = Tensor::zeros({1}, DType::kFloat32);
  EXPECT_THROW(write_safetensors(scratch / "a", {{"x", one}, {"x", one}}), UsageError);
  EXPECT_THROW(write_safetensors(scratch / "b", {{"__metadata__", one}}), UsageError);
  EXPECT_THROW(write_safetensors(scratch / "c", {{"\xff", one}}), UsageError);
  EXPECT_THROW(write_safetensors(scratch / "d", {{"undefined", Tensor()}}), UsageError);
}

}  // namespace
}  // namespace lockstep::checkpoint
