// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/autocast_inspection.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::ordered_json;
using Names = std::vector<std::string>;

Json digits(const std::string& opt_level, const std::string& dtype) {
  std::vector<std::string> overrides{"amp.opt_level=" + opt_level, "amp.dtype=" + dtype};
  if (opt_level == "O0") overrides.push_back("comm.wire_dtype=FP32");
  return inspect_autocast(job::load(std::string(LOCKSTEP_SOURCE_DIR) + "/configs/digits_convnet.pbtxt", overrides));
}

Json line(const Json& found, const std::string& operation) {
  for (const Json& entry : found["operations"]) {
    if (entry["operation"] == operation) return entry;
  }
  ADD_FAILURE() << "no " << operation << " in " << found.dump(1);
  return {};
}

Names column(const Json& found, const std::string& name) {
  Names values;
  for (const Json& entry : found["operations"]) values.push_back(entry[name].get<std::string>());
  return values;
}

TEST(AutocastInspection, HasALineForEachOperationInOrderWithItsLayer) {
  const Json found = digits("O1", "FP16");
  EXPECT_THAT(column(found, "operation"),
              ElementsAre("conv", "batch_norm", "conv", "batch_norm", "reshape", "dropout", "linear", "cross_entropy"));
  EXPECT_THAT(column(found, "layer"), ElementsAre("block0_conv", "block0_norm", "block1_conv", "block1_norm", "flatten",
                                                  "dropout", "classifier", ""));
}

TEST(AutocastInspection, OfO1TellsThePolicyThatDecidedAndWhatWasCast) {
  for (const auto& [job, dtype] : {std::pair{"FP16", "float16"}, std::pair{"BF16", "bfloat16"}}) {
    const Json found = digits("O1", job);
    const Json conv = line(found, "conv");
    EXPECT_EQ(conv["inputs"], (Names{"float32", "float32"}));
    EXPECT_EQ(conv["results"], Names{dtype});
    EXPECT_EQ(conv["decided_by"], "lower precision");
    ASSERT_EQ(conv["casts"].size(), 2u);
    EXPECT_TRUE(conv["casts"][0]["parameter"].is_null());
    EXPECT_EQ(conv["casts"][0]["how"], "cast");
    EXPECT_EQ(conv["casts"][1]["parameter"], "block0_conv.weight");
    EXPECT_EQ(conv["casts"][1]["how"], "compute copy");
    EXPECT_EQ(conv["casts"][1]["to"], dtype);
    const Json norm = line(found, "batch_norm");
    EXPECT_EQ(norm["inputs"], (Names{dtype, "float32", "float32"}));
    EXPECT_EQ(norm["decided_by"], "none");
    const Json loss = line(found, "cross_entropy");
    EXPECT_EQ(loss["inputs"], Names{dtype});
    EXPECT_EQ(loss["results"], Names{"float32"});
    EXPECT_EQ(loss["decided_by"], "autocast off") << "a step computes the loss outside";
  }
}

TEST(AutocastInspection, OfO0HasFloat32AndNoCast) {
  const Json found = digits("O0", "FP32");
  for (const Json& entry : found["operations"]) {
    EXPECT_EQ(entry["results"], Names{"float32"}) << entry;
    EXPECT_TRUE(entry["casts"].empty()) << entry;
  }
  EXPECT_EQ(line(found, "conv")["decided_by"], "autocast off");
}

TEST(AutocastInspection, OfO2AndO3CastsInputAndOutputAlone) {
  for (const std::string level : {"O2", "O3"}) {
    const Json found = digits(level, "FP16");
    Names names = column(found, "operation");
    EXPECT_EQ(names.front(), "cast");
    EXPECT_EQ(names[names.size() - 2], "cast");
    EXPECT_EQ(names.back(), "cross_entropy");
    const Json conv = line(found, "conv");
    EXPECT_EQ(conv["inputs"], (Names{"float16", "float16"})) << level;
    EXPECT_EQ(conv["decided_by"], "autocast off");
    EXPECT_TRUE(conv["casts"].empty());
    EXPECT_EQ(found["operations"].back()["inputs"], Names{"float32"});
    EXPECT_EQ(line(found, "batch_norm")["inputs"][0], "float16");
  }
}

TEST(AutocastInspection, SpeaksToAPersonInOneLineAnOperation) {
  const Json found = digits("O1", "FP16");
  const std::string text = autocast_text(found);
  EXPECT_THAT(text, HasSubstr("digits_convnet: O1 in FP16\n"));
  EXPECT_THAT(text, testing::ContainsRegex("block0_conv +conv +2 float32 +float16 +lower precision +input to float16 "
                                           "\\(cast\\), weight to float16 \\(compute copy\\)\n"));
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(text, '\n')), found["operations"].size() + 3);
}

}  // namespace
}  // namespace lockstep::launcher
