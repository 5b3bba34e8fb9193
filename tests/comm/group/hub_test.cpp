// SPDX-License-Identifier: Apache-2.0
// The hub of ranks without MPI, beside which a test is a rank or a stranger.
#include "comm/group/tcp/hub.h"

#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "comm/group/tcp/tcp_transport.h"
#include "runtime/base/error.h"
#include "tests/comm/group/hub_caller.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

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

}  // namespace
}  // namespace lockstep::comm
