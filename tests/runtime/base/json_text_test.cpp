// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(JsonText, OfManyLevelsIsRefused) {
  EXPECT_TRUE(parse_json(nested(kMostJsonLevels)).is_array());
  EXPECT_TRUE(parse_json(nested(kMostJsonLevels + 1)).is_discarded());
  EXPECT_TRUE(parse_json("{\"a\":" + nested(100'000) + "}").is_discarded());
  EXPECT_TRUE(parse_ordered_json(nested(100'000)).is_discarded());
  EXPECT_TRUE(parse_ordered_json(std::string(100'000, '[')).is_discarded());
}

TEST(JsonText, CountsNoBracketsWithinTexts) {
  const std::string brackets = "\"\\\"" + std::string(100, '[') + "\\\\\"";
  EXPECT_TRUE(parse_json("[" + brackets + "," + brackets + "]").is_array());
  EXPECT_TRUE(parse_json("[" + brackets + "," + nested(kMostJsonLevels) + "]").is_discarded());
  std::string flat = "[0";
  for (int i = 0; i < 100; ++i) flat += ",{\"a\":[]}";
  EXPECT_EQ(parse_json(flat + "]").size(), 101u) << "levels that end do not add up";
}

TEST(JsonText, ThatIsNoneIsRefused) {
  for (const char* text : {"", "{", "}", "[}", "{\"a\"}", "nan"}) EXPECT_TRUE(parse_json(text).is_discarded()) << text;
}

TEST(JsonText, FieldsThatAreMissingAreNull) {
  const nlohmann::ordered_json object = parse_ordered_json(R"({"a": 1})");
  EXPECT_EQ(field_of(object, "a"), 1);
  EXPECT_TRUE(field_of(object, "b").is_null());
  EXPECT_TRUE(field_of(object["a"], "b").is_null());
  EXPECT_TRUE(field_of(parse_ordered_json("["), "a").is_null());
}

TEST(JsonText, IsShownShort) {
  EXPECT_EQ(shown(-1), "-1");
  EXPECT_EQ(shown(parse_json("[1, 2]")), "array");
}

}  // namespace
}  // namespace lockstep
