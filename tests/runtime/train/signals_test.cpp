// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/signals.h"

#include <gtest/gtest.h>

#include <csignal>
#include <functional>

#include "runtime/base/prompt_write.h"
#include "tests/support/streams.h"

namespace lockstep::train {
namespace {

TEST(StopSignals, SayThatTheyAreHeard) {
  const support::Stream pipe = support::make_pipe();
  const StopSignals signals({.descriptor = pipe.in.get(), .ends_on_second = true});
  EXPECT_FALSE(signals.requested());
  std::raise(SIGTERM);
  std::raise(SIGTERM);
  EXPECT_TRUE(signals.requested());
  EXPECT_EQ(support::read_now(pipe.out), kStopNotice);
}

TEST(StopSignals, DoNotWaitForWhoeverReadsTheNotice) {
  for (const auto& make : {std::function([] { return support::make_pipe(); }), std::function(support::make_terminal)}) {
    const support::Stream stream = make();
    const Descriptor own = reopen_nonblocking(stream.in.get());
    while (write_promptly(own.get(), "x") > 0) {
    }
    const StopSignals signals({.descriptor = stream.in.get()});
    std::raise(SIGTERM);
    EXPECT_TRUE(signals.requested());
  }
}

}  // namespace
}  // namespace lockstep::train
