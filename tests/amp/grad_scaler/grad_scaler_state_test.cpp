// SPDX-License-Identifier: Apache-2.0
#include "amp/grad_scaler/grad_scaler_state.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"

namespace lockstep::amp {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ScalerJson, HasPyTorchsFields) {
  const GradScalerState state{.scale = 65536,
                              .growth_factor = 2,
                              .backoff_factor = 0.5,
                              .growth_interval = 2000,
                              .growth_tracker = 7,
                              .consecutive_skips = 1,
                              .skipped_steps = 3};
  EXPECT_EQ(to_json(state),
            R"({"scale":65536.0,"growth_factor":2.0,"backoff_factor":0.5,"growth_interval":2000,"_growth_tracker":7,)"
            R"("consecutive_skips":1,"skipped_steps":3})");
  EXPECT_EQ(grad_scaler_state_from_json(to_json(state)), state);
}

TEST(ScalerJson, ReadsPyTorchs) {
  const GradScalerState state = grad_scaler_state_from_json(
      R"({"scale": 131072.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 11})");
  EXPECT_EQ(state.scale, 131072);
  EXPECT_EQ(state.growth_tracker, 11u);
  EXPECT_EQ(state.skipped_steps, 0u);
}

TEST(ScalerJson, OfADisabledOneIsEmpty) {
  EXPECT_EQ(to_json({}), "{}");
  EXPECT_TRUE(grad_scaler_state_from_json("{}").empty());
}

TEST(ScalerJson, RefusesWhatCannotBeAState) {
  const auto refused = [](const char* text, const char* message) {
    EXPECT_THAT([&] { grad_scaler_state_from_json(text); }, ThrowsMessage<UsageError>(HasSubstr(message))) << text;
  };
  refused("", "no JSON object");
  refused("[1]", "no JSON object");
  refused(R"({"scale": 1)", "no JSON object");
  refused(R"({"scale": 1.0})", "\"growth_factor\" is missing");
  refused(R"({"growth_factor": 2.0})", "\"scale\" is missing");
  const auto with = [](const std::string& scale, const std::string& tracker) {
    return R"({"scale":)" + scale +
           R"(,"growth_factor":2,"backoff_factor":0.5,"growth_interval":5,"_growth_tracker":)" + tracker + "}";
  };
  EXPECT_NO_THROW(grad_scaler_state_from_json(with("2", "0")));
  for (const char* scale : {"0", "-1", "1e39", "1e-60", "\"65536\"", "null", "[2]"}) {
    refused(with(scale, "0").c_str(), "\"scale\"");
  }
  for (const char* tracker : {"-1", "1.5", "4294967296", "true", "{}"}) {
    refused(with("2", tracker).c_str(), "\"_growth_tracker\" must be a whole number");
  }
}

}  // namespace
}  // namespace lockstep::amp
