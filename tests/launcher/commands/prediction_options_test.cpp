// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/prediction_options.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"

namespace lockstep::launcher {
namespace {

using comm::RankLayout;
using testing::ElementsAre;

constexpr RankLayout kTwoHosts{4, 2};

std::vector<RankLayout> layouts(const std::string& predict, const RankLayout& run) {
  return PredictionOptions{.predict = predict}.layouts(run);
}

TEST(PredictionOptions, HostsHaveAsManyRanksAsIsSaidOrAsTheRunHas) {
  EXPECT_THAT(layouts("1,2,64:8", kTwoHosts), ElementsAre(RankLayout{1, 1}, RankLayout{2, 2}, RankLayout{64, 8}));
  EXPECT_THAT(layouts("6", kTwoHosts), ElementsAre(RankLayout{6, 2}));
}

TEST(PredictionOptions, RanksOnOneHostNeedNoNetwork) {
  EXPECT_THAT(layouts("4:4", {}), ElementsAre(RankLayout{4, 4}));
  EXPECT_THROW(layouts("4", {}), UsageError);
  EXPECT_THAT((PredictionOptions{.predict = "4", .network_gbps = 1}.layouts({})), ElementsAre(RankLayout{4, 1}));
}

TEST(PredictionOptions, HostsOfDifferentNumbersOfRanksAreRefused) {
  EXPECT_THROW(layouts("5", kTwoHosts), UsageError);
  EXPECT_THROW(layouts("2", {3, 2}), UsageError);
}

TEST(PredictionOptions, TextsThatAreNoNumbersOfRanksAreRefused) {
  for (const char* const text : {"", ",", "2,", "2 ,4", "-2", "0", "1000001", "2:0", "2:2:2", "2.5"}) {
    EXPECT_THROW(layouts(text, kTwoHosts), UsageError) << text;
  }
}

TEST(PredictionOptions, WhatIsGivenReplacesWhatWasMeasured) {
  train::MeasuredLinks measured{.layout = kTwoHosts, .spare_cores = true, .in_host = true, .between_hosts = true};
  measured.links = {.host_alpha_us = 2, .host_gb_per_s = 30, .network_gbps = 5, .latency_us = 20};
  const train::MachineFloors floors{.memory_gb_per_s = 10};
  EXPECT_EQ((PredictionOptions{.predict = "4"}.links(measured, floors).network_gbps), 5);
  const comm::RankLinks given =
      PredictionOptions{.predict = "4", .network_gbps = 1, .latency_us = 7}.links(measured, floors);
  EXPECT_NEAR(given.network_gbps, 0.94, 0.01);
  EXPECT_EQ(given.latency_us, 7);
  EXPECT_EQ(given.host_gb_per_s, 30);
}

TEST(PredictionOptions, AMachinesCopyStandsForWhatALoneRankCannotMeasure) {
  const train::MachineFloors floors{.memory_gb_per_s = 10};
  const PredictionOptions options{.predict = "4", .network_gbps = 1};
  EXPECT_EQ(options.links({}, floors).host_gb_per_s, 5);
  EXPECT_EQ(options.links({}, floors).copy_gb_per_s, 10);
  EXPECT_EQ(options.links({.spare_cores = true}, floors).copy_gb_per_s, std::nullopt);
  // Steps of several ranks have it in them.
  EXPECT_EQ(options.links({.layout = kTwoHosts}, floors).copy_gb_per_s, std::nullopt);
}

}  // namespace
}  // namespace lockstep::launcher
