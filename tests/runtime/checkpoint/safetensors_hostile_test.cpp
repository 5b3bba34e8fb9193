// SPDX-License-Identifier: Apache-2.0
// Files made to harm a reader. Each is refused before any tensor is handed out, with the file and what is wrong.
#include <gmock/gmock.h>

#include "runtime/checkpoint/safetensors.h"
#include "tests/runtime/checkpoint/checkpoint_support.h"

namespace lockstep::checkpoint {
namespace {

using testing::HasSubstr;

std::string length_prefix(std::uint64_t length) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(length >> shift & 0xff);
  return bytes;
}

std::string with_header(const std::string& json, std::size_t data_bytes = 0) {
  return length_prefix(json.size()) + json + std::string(data_bytes, '\1');
}

std::string error_of(const std::string& content) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "hostile.safetensors";
  spill(path, content);
  try {
    const SafetensorsFile file(path);
    for (const TensorEntry& entry : file.tensors()) file.read(entry);
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path));
    return error.what();
  }
  return "accepted";
}

struct Hostile {
  const char* name;
  const char* json;
  std::size_t data_bytes;
  const char* complaint;
};

class HostileHeader : public testing::TestWithParam<Hostile> {};

TEST_P(HostileHeader, IsRefused) {
  EXPECT_THAT(error_of(with_header(GetParam().json, GetParam().data_bytes)), HasSubstr(GetParam().complaint));
}

INSTANTIATE_TEST_SUITE_P(
    Headers, HostileHeader,
    testing::Values(
        Hostile{"empty", "", 0, "must start with '{'"}, Hostile{"array", "[]", 0, "must start with '{'"},
        Hostile{"leading_space", " {}", 0, "must start with '{'"}, Hostile{"cut", "{", 0, "is not JSON"},
        Hostile{"rest", "{}{}", 0, "is not JSON"}, Hostile{"bad_utf8", "{\"\xff\":1}", 0, "is not JSON"},
        Hostile{"data_without_tensors", "{}", 4, "its tensors end at byte 0"},
        Hostile{
            "name_twice",
            R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
            2, "tensor 'w' is listed twice"},
        Hostile{"metadata_twice", R"({"__metadata__":{},"__metadata__":{}})", 0, "__metadata__ is listed twice"},
        Hostile{"metadata_key_twice", R"({"__metadata__":{"a":"","a":""}})", 0, "__metadata__ has 'a' twice"},
        Hostile{"metadata_number", R"({"__metadata__":{"a":1}})", 0, "a number where none is allowed"},
        Hostile{"metadata_nested", R"({"__metadata__":{"a":{}}})", 0, "an object where none is allowed"},
        Hostile{"field_twice", R"({"w":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1,
                "tensor 'w' has 'dtype' twice"},
        Hostile{"unknown_field", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"code":"x"}})", 1,
                "the unknown field 'code'"},
        Hostile{"no_shape", R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", 1, "lacks one of dtype, shape"},
        Hostile{"dtype", R"({"w":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}})", 1,
                "tensor 'w' has the unknown dtype 'F8_E4M3'"},
        Hostile{"dtype_number", R"({"w":{"dtype":1,"shape":[1],"data_offsets":[0,1]}})", 1, "a number where none"},
        Hostile{"negative_extent", R"({"w":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1, "a negative number"},
        Hostile{"fraction", R"({"w":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", 1, "no 64-bit integer"},
        Hostile{"null_extent", R"({"w":{"dtype":"U8","shape":[null],"data_offsets":[0,1]}})", 1, "has null"},
        Hostile{"boolean", R"({"w":true})", 1, "must be an object, found a boolean"},
        Hostile{"extent_past_int64", R"({"w":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,1]}})", 1,
                "a shape that overflows"},
        Hostile{"extent_past_uint64", R"({"w":{"dtype":"U8","shape":[99999999999999999999],"data_offsets":[0,1]}})", 1,
                "no 64-bit integer"},
        Hostile{"shape_overflow", R"({"w":{"dtype":"U8","shape":[4294967296,4294967296,2],"data_offsets":[0,1]}})", 1,
                "tensor 'w' has a shape that overflows"},
        Hostile{"bytes_overflow", R"({"w":{"dtype":"F64","shape":[4611686018427387904],"data_offsets":[0,0]}})", 0,
                "a shape that overflows"},
        Hostile{"rank", R"({"w":{"dtype":"U8","shape":[1,1,1,1,1,1,1],"data_offsets":[0,1]}})", 1,
                "more than 6 dimensions"},
        Hostile{"nested_shape", R"({"w":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1, "has an array"},
        Hostile{"size", R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,7]}})", 7, "float32 [2] needs 8 bytes"},
        Hostile{"backwards", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1, "data_offsets [1, 0]"},
        Hostile{"one_offset", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[1]}})", 1, "needs two data_offsets"},
        Hostile{"three_offsets", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", 1, "more than two"},
        Hostile{
            "overlap",
            R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
            3, "tensor 'b' starts at byte 1, inside"},
        Hostile{
            "hole",
            R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
            3, "tensor 'b' starts at byte 2, with a hole"},
        Hostile{"hole_at_start", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2, "with a hole"},
        Hostile{"past_the_end", R"({"w":{"dtype":"U8","shape":[9],"data_offsets":[0,9]}})", 8,
                "truncated in tensor 'w': 8 of 9 bytes"},
        Hostile{"offsets_near_2_64",
                R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[18446744073709551614,18446744073709551615]}})", 1,
                "with a hole"},
        Hostile{"tail", R"({"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2, "its tensors end at byte 1"}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST(HostileFile, OfAFewBytesIsRefused) {
  for (std::size_t size = 0; size < 8; ++size) EXPECT_THAT(error_of(std::string(size, '\0')), HasSubstr("truncated"));
}

TEST(HostileFile, WithAHeaderLongerThanItselfIsRefused) {
  for (const std::uint64_t length : {3ull, 4ull << 20, 100'000'000ull, 1ull << 63, ~0ull}) {
    EXPECT_THAT(error_of(length_prefix(length) + "{}"), HasSubstr("a header of " + std::to_string(length)));
  }
}

TEST(HostileFile, WithAHeaderOf100MegabytesIsRefusedUnread) {
  const ScratchDirectory scratch;
  const std::string path = scratch / "hostile.safetensors";
  spill(path, length_prefix(100'000'000) + "{");
  fs::resize_file(path, 200'000'000);  // a hole: takes no space
  bool read_header = false;
  const ScopedHook hook([&](const StorageCall& call) {
    read_header |= call.operation == StorageOperation::kRead && call.index > 1;
    return StorageFault{};
  });
  EXPECT_THROW(SafetensorsFile{path}, StorageError);
  EXPECT_FALSE(read_header);
}

TEST(HostileFile, OfBoolsThatAreNoneIsRefused) {
  EXPECT_EQ(error_of(with_header(R"({"w":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 1)), "accepted");
  std::string content = with_header(R"({"w":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", 1);
  content.back() = 2;
  EXPECT_THAT(error_of(content), HasSubstr("tensor 'w' is of bools"));
}

/// Repeats `unit` up to the longest header allowed.
std::string bomb(std::string json, const std::string& unit) {
  while (json.size() + unit.size() <= 4 << 20) json += unit;
  return json;
}

/// Processor time of this thread, so that other load does not count.
double seconds_to_refuse(const std::string& json) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  EXPECT_THROW(parse_safetensors_header(json, 0, "bomb"), StorageError);
  return now() - start;
}

TEST(HostileFile, WithALongHeaderIsRefusedAtItsFirstFault) {
  for (const auto& [start, unit] :
       {std::pair("{\"a\":", "["), std::pair("{\"a\":", "{\"a\":"), std::pair("{\"__metadata__\":", "{\"a\":"),
        std::pair("{\"a\":{\"shape\":", "["), std::pair("{\"a\":{\"shape\":[", "1,"),
        std::pair("{\"a\":{", "\"dtype\":\"F32\","), std::pair("{", "{"), std::pair("", "\x01")}) {
    EXPECT_LT(seconds_to_refuse(bomb(start, unit)), 0.1) << start << unit << "...";
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
