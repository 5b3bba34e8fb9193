// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/error_block.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "launcher/commands/rank.h"
#include "runtime/base/prompt_write.h"
#include "tests/support/no_threads.h"
#include "tests/support/streams.h"

namespace lockstep::launcher {
namespace {

TEST(ErrorBlock, SaysKindExitCodeWhatAndAdvice) {
  const NumericsError error("the loss is nan\nat step 5", "Lower the learning rate.\nOr clip.");
  EXPECT_EQ(error_block(error, "", false),
            "lockstep: error (numerics, exit 5)\n"
            "  the loss is nan\n"
            "  at step 5\n"
            "  → Lower the learning rate.\n"
            "    Or clip.\n");
}

TEST(ErrorBlock, NamesTheRankAndLeavesOutMissingAdvice) {
  EXPECT_EQ(error_block(StorageError("disk full"), "on rank 1", false),
            "lockstep: error on rank 1 (storage, exit 4)\n  disk full\n");
}

TEST(ErrorBlock, IsColouredForATerminalOnly) {
  EXPECT_EQ(error_block(UsageError("x"), "", false).find('\033'), std::string::npos);
  EXPECT_NE(error_block(UsageError("x"), "", true).find("\033[1;31merror"), std::string::npos);
}

// What a peer or a file says must not move the cursor or colour the words of others.
TEST(ErrorBlock, ShowsControlCharactersAsText) {
  EXPECT_EQ(error_block(StorageError("a\033[2J\nb\xc2\x9b", "c\a"), "", false),
            "lockstep: error (storage, exit 4)\n"
            "  a\\x1b[2J\n"
            "  b\\xc2\\x9b\n"
            "  → c\\x07\n");
}

TEST(PrintError, DoesNotWaitForAReaderThatTakesNothing) {
  const support::Stream pipe = support::make_pipe();
  const Descriptor own = reopen_nonblocking(pipe.in.get());
  while (write_promptly(own.get(), "x") > 0) {
  }
  const support::RedirectedStderr redirected(pipe.in);
  print_error(StorageError("disk full"));
}

TEST(EndRank, TellsTheErrorInAnEnvironmentThatIsWrongToo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end = [] {
    setenv("OMPI_COMM_WORLD_RANK", "none", 1);
    end_rank(StorageError("disk full"));
  };
  EXPECT_EXIT(end(), testing::ExitedWithCode(4), "error \\(storage, exit 4\\)\n  disk full");
}

TEST(AsError, GivesEveryExceptionItsExitCode) {
  EXPECT_EQ(as_error(PeerError("gone")).code(), ExitCode::kPeerLost);
  EXPECT_EQ(as_error(std::bad_alloc()).code(), ExitCode::kMemory);
  EXPECT_EQ(as_error(std::filesystem::filesystem_error("x", {})).code(), ExitCode::kStorage);
  EXPECT_EQ(as_error(std::runtime_error("x")).code(), ExitCode::kEnvironment);
}

TEST(AsError, SaysThatTheMachineLacksThreads) {
  const support::NoMoreThreads no_more;
  try {
    std::thread([] {}).join();
    FAIL() << "a thread was started";
  } catch (const std::system_error& exception) {
    const Error error = as_error(exception);
    EXPECT_EQ(error.code(), ExitCode::kEnvironment);
    EXPECT_NE(std::string(error.what()).find("lacks threads"), std::string::npos) << error.what();
  }
}

TEST(AsError, KeepsTheAdvice) { EXPECT_EQ(as_error(UsageError("what", "advice")).advice(), "advice"); }

}  // namespace
}  // namespace lockstep::launcher
