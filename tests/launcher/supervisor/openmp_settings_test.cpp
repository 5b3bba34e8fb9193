// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/openmp_settings.h"

#include <gmock/gmock.h>

#include "tests/launcher/program.h"

namespace lockstep::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

/// What GCC's library, which oneDNN loads in a build by clang, too, says of its settings each time that it is loaded.
constexpr const char* kLoaded = "GOMP_SPINCOUNT = '";

class OpenmpSettings : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMP_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) unsetenv(name);
  }

  /// A run whose OpenMP libraries say what their settings are.
  Ended train(Program::Variables variables) const {
    variables.emplace_back("OMP_DISPLAY_ENV", "verbose");
    return lockstep_command({"train", kMlpJob, "--run-dir", "run", "--set", "train.steps=1"}, folder_, variables);
  }

  Folder folder_;
};

TEST_F(OpenmpSettings, AreAThreadACoreAndAShortSpin) {
  EXPECT_THAT(openmp_settings(6), ElementsAre(Pair("GOMP_SPINCOUNT", "1000"), Pair("OMP_NUM_THREADS", "6")));
  // More ranks than cores.
  EXPECT_EQ(openmp_settings(0).at("OMP_NUM_THREADS"), "1");
}

TEST_F(OpenmpSettings, LeaveThoseOfTheUserAlone) {
  setenv("OMP_NUM_THREADS", "3", 1);
  setenv("OMP_WAIT_POLICY", "active", 1);
  EXPECT_THAT(openmp_settings(6), ElementsAre(Pair("OMP_NUM_THREADS", "3"), Pair("OMP_WAIT_POLICY", "active")));
  unsetenv("OMP_WAIT_POLICY");
  setenv("GOMP_SPINCOUNT", "5", 1);
  EXPECT_THAT(openmp_settings(6), ElementsAre(Pair("GOMP_SPINCOUNT", "5"), Pair("OMP_NUM_THREADS", "3")));
}

TEST_F(OpenmpSettings, HoldInALoneProcessOfSeveralThreads) {
  const Ended ended = train({{"OMP_NUM_THREADS", "2"}});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("GOMP_SPINCOUNT = '1000'"));
  EXPECT_EQ(count(ended.out, "step 1/1"), 1u) << ended.out;
}

TEST_F(OpenmpSettings, OfTheUserStartTheProgramOnce) {
  for (const char* policy : {"passive", "active"}) {
    const Ended ended = train({{"OMP_NUM_THREADS", "2"}, {"OMP_WAIT_POLICY", policy}});
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.err, Not(HasSubstr("GOMP_SPINCOUNT = '1000'")));
    EXPECT_EQ(count(ended.err, kLoaded), 1u) << ended.err;
  }
  // One thread waits for nobody.
  EXPECT_EQ(count(train({{"OMP_NUM_THREADS", "1"}}).err, kLoaded), 1u);
}

}  // namespace
}  // namespace lockstep::launcher
