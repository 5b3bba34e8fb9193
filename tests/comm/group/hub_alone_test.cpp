// SPDX-License-Identifier: Apache-2.0
// The hub and the link of ranks without MPI, each with a test at its other end.
#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "comm/group/tcp/hub.h"
#include "comm/group/tcp/tcp_transport.h"
#include "runtime/base/error.h"
#include "tests/comm/group/hub_caller.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A hub without rank 0's link: what the hub tells it is read by the test.
struct LoneHub {
  explicit LoneHub(const Hello& expected = hello_of(0, 2)) : LoneHub(listen_at(0, true), connected_pair(), expected) {}
  LoneHub(Socket listener, std::pair<Socket, Socket> ends, const Hello& expected)
      : port(listener.port()),
        rank0(std::move(ends.second)),
        hub(std::in_place, std::move(listener), std::move(ends.first), expected, kKey, kSoon) {}
  Socket connect() const {
    std::string reason;
    return connect_to("127.0.0.1", port, soon(), reason);
  }

  std::uint16_t port;
  Socket rank0;
  std::optional<TcpHub> hub;
};

// The run is not done, whatever number came.
TEST(HubAlone, MakesNoSuccessOfAnAbort) {
  const LoneHub lone;
  const Socket rank = lone.connect();
  answer_to(rank, hello_of(1, 2));
  const FrameHeader abort{.kind = FrameKind::kAbort, .number = 0};
  EXPECT_TRUE(rank.send_all(&abort, sizeof abort, soon()));
  FrameHeader told;
  EXPECT_TRUE(lone.rank0.receive_all(&told, sizeof told, soon()));
  EXPECT_EQ(told.kind, FrameKind::kAbort);
  EXPECT_EQ(told.number, static_cast<std::int64_t>(ExitCode::kPeerLost));
}

TEST(HubAlone, NamesBothJobsAndBothSizes) {
  const auto hello = [](int rank, int size, const char* job, const char* hash) {
    Hello made = hello_of(rank, size);
    made.job = ShortText::of(job);
    made.job_hash = ShortText::of(hash);
    return made;
  };
  const LoneHub lone(hello(0, 2, "digits", "aa"));
  const Welcome name = answer_to(lone.connect(), hello(1, 2, "letters", "aa"));
  EXPECT_EQ(name.answer, Welcome::Answer::kOtherJob);
  EXPECT_THAT(name.reason.str(), HasSubstr("\"letters\", rank 0 \"digits\""));
  const Welcome hash = answer_to(lone.connect(), hello(1, 2, "digits", "bb"));
  EXPECT_EQ(hash.answer, Welcome::Answer::kOtherJob);
  EXPECT_THAT(hash.reason.str(), HasSubstr("other settings than rank 0: bb, rank 0 aa"));
  const Welcome size = answer_to(lone.connect(), hello(1, 3, "digits", "aa"));
  EXPECT_EQ(size.answer, Welcome::Answer::kRefused);
  EXPECT_THAT(size.reason.str(), HasSubstr("3 ranks, rank 0 of 2"));
}

/// Collects the log while it lives.
class Log {
 public:
  Log() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(
        std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(words_)));
  }
  ~Log() { spdlog::set_default_logger(before_); }
  std::string words() const { return words_.str(); }
  std::size_t count(const std::string& part) const {
    std::size_t found = 0;
    for (std::size_t at = words().find(part); at != std::string::npos; at = words().find(part, at + 1)) ++found;
    return found;
  }

 private:
  std::shared_ptr<spdlog::logger> before_;
  std::ostringstream words_;
};

TEST(HubAlone, SaysARefusalOnceAndNothingOfStrangers) {
  const Log log;
  LoneHub lone;
  Hello stranger = hello_of(1, 7);
  stranger.host = ShortText::of(std::string(255, 'x'));
  answer_to(lone.connect(), stranger, key_of("guessed"));
  for (int i = 0; i < 3; ++i) answer_to(lone.connect(), hello_of(1, 3));
  for (int size = 100; size < 200; ++size) answer_to(lone.connect(), hello_of(1, size));
  lone.hub.reset();
  EXPECT_EQ(log.count("xxxx"), 0u) << log.words();
  EXPECT_EQ(log.count("it was told of 3 ranks"), 1u) << log.words();
  EXPECT_LT(log.count("refused rank 1"), 20u) << log.words();
}

/// How much processor time this process has taken.
std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// All file descriptors that this process may have, but for one.
class LastDescriptor {
 public:
  LastDescriptor() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few{256, before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
    for (int taken = dup(0); taken >= 0; taken = dup(0)) taken_.emplace_back(taken);
    taken_.pop_back();
  }
  ~LastDescriptor() { setrlimit(RLIMIT_NOFILE, &before_); }
  LastDescriptor(const LastDescriptor&) = delete;
  LastDescriptor& operator=(const LastDescriptor&) = delete;

 private:
  rlimit before_{};
  std::vector<Descriptor> taken_;
};

TEST(HubAlone, SleepsWhileItHasNoFileDescriptorForACaller) {
  const LoneHub lone;
  Socket caller;
  {
    const LastDescriptor last;
    caller = lone.connect();
    ASSERT_TRUE(caller);
    const auto before = processor_time();
    std::this_thread::sleep_for(1s);
    EXPECT_LT(processor_time() - before, 300ms) << "it waits for what is there";
  }
  EXPECT_EQ(answer_to(caller, hello_of(1, 2)).answer, Welcome::Answer::kWelcome);
}

TEST(LinkDeathTest, MakesNoSuccessOfAnAbort) {
  for (const std::int64_t number : {std::int64_t{0}, std::int64_t{256}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    const auto obey = [number] {
      const std::pair<Socket, Socket> ends = connected_pair();
      TcpLink link(Socket(dup(ends.first.descriptor())), 1, "rank 0", kSoon);
      const FrameHeader abort{.kind = FrameKind::kAbort, .number = number};
      ends.second.send(&abort, sizeof abort);
      std::this_thread::sleep_for(kSoon);
    };
    EXPECT_EXIT(obey(), testing::ExitedWithCode(static_cast<int>(ExitCode::kPeerLost)), "") << number;
  }
}

}  // namespace
}  // namespace lockstep::comm
