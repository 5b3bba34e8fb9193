// SPDX-License-Identifier: Apache-2.0
// The hub of ranks without MPI, beside which a test is a rank or a stranger.
#include "comm/group/tcp/hub.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "comm/group/tcp/tcp_transport.h"
#include "runtime/base/error.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kSoon = 60s;  // far beyond what is needed

Socket::Clock::time_point soon() { return Socket::Clock::now() + kSoon; }

RunKey key_of(const std::string& name) { return sha256(std::as_bytes(std::span(name))); }

const RunKey kKey = key_of("this run");

Hello hello_of(int rank, int size) {
  Hello hello;
  hello.rank = rank;
  hello.size = size;
  return hello;
}

/// What the hub says first.
Greeting greeting_of(const Socket& socket) {
  Greeting greeting;
  EXPECT_TRUE(socket.receive_all(&greeting, sizeof greeting, soon()));
  EXPECT_EQ(greeting.magic, kGreetingMagic);
  EXPECT_EQ(greeting.version, kTcpVersion);
  return greeting;
}

/// What becomes of a rank that says `hello` and has `key`.
Welcome answer_to(const Socket& socket, Hello hello, const RunKey& key = kKey) {
  const Greeting greeting = greeting_of(socket);
  hello.proof = proof_of(hello, greeting, key);
  Welcome welcome;
  EXPECT_TRUE(socket.send_all(&hello, sizeof hello, soon()));
  EXPECT_TRUE(socket.receive_all(&welcome, sizeof welcome, soon()));
  EXPECT_EQ(welcome.proof, proof_of(welcome, greeting, hello, kKey)) << "the hub has the key";
  return welcome;
}

/// Whether the hub ends the connection, whatever it says before.
bool is_closed(const Socket& socket) {
  std::array<char, 64> bytes{};
  const auto end = soon();
  while (socket.receive_all(bytes.data(), 1, end)) {
  }
  return Socket::Clock::now() < end;
}

/// A hub of two ranks, beside which a test is rank 1.
class Hub : public testing::Test {
 protected:
  explicit Hub(std::chrono::milliseconds greeting = TcpHub::kGreeting)
      : Hub(listen_at(0, true), connected_pair(), greeting) {}
  Hub(Socket listener, std::pair<Socket, Socket> ends, std::chrono::milliseconds greeting)
      : port_(listener.port()),
        hub_(std::move(listener), std::move(ends.first), hello_of(0, 2), kKey, kSoon, greeting),
        rank0_(std::move(ends.second), 0, "rank 0", kSoon) {}

  Socket connect() const {
    std::string reason;
    return connect_to("127.0.0.1", port_, soon(), reason);
  }
  /// Rank 1, once it is welcome.
  Socket rank1() const {
    Socket socket = connect();
    EXPECT_EQ(answer_to(socket, hello_of(1, 2)).answer, Welcome::Answer::kWelcome);
    return socket;
  }
  static void send(const Socket& socket, const FrameHeader& header) {
    EXPECT_TRUE(socket.send_all(&header, sizeof header, soon()));
  }
  /// What a barrier of rank 0 comes to.
  std::string barrier() {
    try {
      rank0_.exchange(0, {.kind = OperationKind::kBarrier}, nullptr, 0, "barrier");
    } catch (const PeerError& error) {
      return error.what();
    }
    return "passed";
  }

  std::uint16_t port_;
  TcpHub hub_;
  TcpLink rank0_;
};

TEST_F(Hub, BytesOfStrangersAreNobodys) {
  const Socket stranger = connect();
  const std::string request(sizeof(Hello), 'x');
  EXPECT_TRUE(stranger.send_all(request.data(), request.size(), soon()));
  EXPECT_TRUE(is_closed(stranger));
  const Socket rank = rank1();
  send(rank, {.kind = FrameKind::kContribution, .operation = {.kind = OperationKind::kBarrier}});
  EXPECT_EQ(barrier(), "passed");
}

// More than a process may have open, were all of them kept.
TEST_F(Hub, ConnectionsThatSayNothingAreBounded) {
  std::vector<Socket> silent;
  for (int i = 0; i < 200; ++i) silent.push_back(connect());
  EXPECT_TRUE(is_closed(silent.front()));
  const Socket rank = rank1();
  send(rank, {.kind = FrameKind::kContribution, .operation = {.kind = OperationKind::kBarrier}});
  EXPECT_EQ(barrier(), "passed");
}

class HastyHub : public Hub {
 protected:
  HastyHub() : Hub(50ms) {}
};

TEST_F(HastyHub, ConnectionsThatSayNothingExpire) {
  const Socket silent = connect();
  const Socket halting = connect();
  const Hello hello = hello_of(1, 2);
  EXPECT_TRUE(halting.send_all(&hello, sizeof hello / 2, soon()));
  EXPECT_TRUE(is_closed(silent));
  EXPECT_TRUE(is_closed(halting));
}

TEST_F(Hub, AStrangerWithoutTheSecretIsNoRank) {
  const Socket stranger = connect();
  EXPECT_EQ(answer_to(stranger, hello_of(1, 2), key_of("guessed")).answer, Welcome::Answer::kOtherRun);
  EXPECT_TRUE(is_closed(stranger));
  rank1();
}

// What somebody has heard another rank say proves nothing of himself.
TEST_F(Hub, AGreetingIsGoodOnce) {
  Hello heard = hello_of(1, 2);
  {
    const Socket rank = connect();
    heard.proof = proof_of(heard, greeting_of(rank), kKey);
    EXPECT_TRUE(rank.send_all(&heard, sizeof heard, soon()));
    Welcome welcome;
    EXPECT_TRUE(rank.receive_all(&welcome, sizeof welcome, soon()));
    EXPECT_EQ(welcome.answer, Welcome::Answer::kWelcome);
  }
  const Socket stranger = connect();
  greeting_of(stranger);
  EXPECT_TRUE(stranger.send_all(&heard, sizeof heard, soon()));
  Welcome welcome;
  EXPECT_TRUE(stranger.receive_all(&welcome, sizeof welcome, soon()));
  EXPECT_EQ(welcome.answer, Welcome::Answer::kOtherRun);
  EXPECT_THAT(welcome.reason.str(), HasSubstr("another run"));
}

TEST_F(Hub, AGreetingIsGoodInAllItsBytes) {
  const std::vector<std::function<void(Hello&)>> changes{
      [](Hello& hello) { hello.rank = 0; },       [](Hello& hello) { hello.size = 3; },
      [](Hello& hello) { ++hello.process; },      [](Hello& hello) { hello.port = 1; },
      [](Hello& hello) { ++hello.nonce[15]; },    [](Hello& hello) { hello.job.text[255] = 'x'; },
      [](Hello& hello) { ++hello.host.text[0]; }, [](Hello& hello) { ++hello.proof[31]; }};
  for (const auto& change : changes) {
    const Socket socket = connect();
    Hello hello = hello_of(1, 2);
    hello.proof = proof_of(hello, greeting_of(socket), kKey);
    change(hello);
    EXPECT_TRUE(socket.send_all(&hello, sizeof hello, soon()));
    Welcome welcome;
    EXPECT_TRUE(socket.receive_all(&welcome, sizeof welcome, soon()));
    EXPECT_THAT(welcome.reason.str(), HasSubstr("another run"));
  }
}

// Somebody at another of the ports has passed it on, to be taken for the rank.
TEST_F(Hub, AGreetingForAnotherPortIsNone) {
  Hello hello = hello_of(1, 2);
  hello.port = port_ - 1u;
  const Welcome welcome = answer_to(connect(), hello);
  EXPECT_EQ(welcome.answer, Welcome::Answer::kOtherRun);
  EXPECT_THAT(welcome.reason.str(), HasSubstr("where rank 0 is not"));
  hello.port = port_;
  EXPECT_EQ(answer_to(connect(), hello).answer, Welcome::Answer::kWelcome);
}

// Its machine has several addresses.
TEST_F(Hub, ARankThatAsksTwiceIsWelcomeOnce) {
  const Socket first = rank1();
  const Welcome welcome = answer_to(connect(), hello_of(1, 2));
  EXPECT_EQ(welcome.answer, Welcome::Answer::kOtherRun) << "no refusal, which would end the rank";
  send(first, {.kind = FrameKind::kContribution, .operation = {.kind = OperationKind::kBarrier}});
  EXPECT_EQ(barrier(), "passed");
}

TEST_F(Hub, OneThatWasWelcomeAndLeftWithoutAWordMayComeAgain) {
  rank1();
  Socket again;
  // The hub sees the end of the first connection a moment later.
  for (; !again; std::this_thread::sleep_for(1ms)) {
    Socket socket = connect();
    if (answer_to(socket, hello_of(1, 2)).answer == Welcome::Answer::kWelcome) again = std::move(socket);
  }
  send(again, {.kind = FrameKind::kContribution, .operation = {.kind = OperationKind::kBarrier}});
  EXPECT_EQ(barrier(), "passed");
}

// The others know that it is lost, whoever takes its place.
TEST_F(Hub, ARankThatIsLostDoesNotComeAgain) {
  send(rank1(), {.kind = FrameKind::kFailed});
  EXPECT_THAT(barrier(), HasSubstr("rank 1"));
  const Welcome welcome = answer_to(connect(), hello_of(1, 2));
  EXPECT_EQ(welcome.answer, Welcome::Answer::kOtherRun);
  EXPECT_THAT(welcome.reason.str(), HasSubstr("lost"));
}

TEST_F(Hub, ARankThatSendsNonsenseIsGone) {
  const std::vector<FrameHeader> nonsense{{.kind = static_cast<FrameKind>(99)},
                                          {.kind = FrameKind::kResult},
                                          {.bytes = std::uint64_t{1} << 40},
                                          {.channel = -1},
                                          {.operation = {.dtype = static_cast<DType>(200)}}};
  for (const FrameHeader& header : nonsense) {
    std::pair<Socket, Socket> ends = connected_pair();
    Socket listener = listen_at(0, true);
    const std::uint16_t port = listener.port();
    const TcpHub hub(std::move(listener), std::move(ends.first), hello_of(0, 2), kKey, kSoon);
    TcpLink link(std::move(ends.second), 0, "rank 0", kSoon);
    std::string reason;
    const Socket socket = connect_to("127.0.0.1", port, soon(), reason);
    answer_to(socket, hello_of(1, 2));
    send(socket, {.kind = FrameKind::kDeviceWait});
    send(socket, header);
    try {
      link.exchange(0, {.kind = OperationKind::kBarrier}, nullptr, 0, "barrier");
      FAIL();
    } catch (const PeerError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 1"));
      EXPECT_THAT(error.what(), HasSubstr("is gone"));
    }
  }
}

TEST_F(Hub, AnUnknownChannelOrAmountIsAnErrorOfAll) {
  const Socket rank = rank1();
  const Operation operation{.kind = OperationKind::kAllReduce, .dtype = DType::kFloat32, .count = 1};
  send(rank, {.kind = FrameKind::kContribution, .operation = operation});
  const float one = 1;
  try {
    rank0_.exchange(0, operation, &one, sizeof one, "all_reduce");
    FAIL();
  } catch (const PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 (process 0) has sent another amount of data"));
  }
}

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

/// What is logged while it lives.
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
