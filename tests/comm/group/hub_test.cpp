// SPDX-License-Identifier: Apache-2.0
// The hub of ranks without MPI, beside which a test is a rank or a stranger.
#include "comm/group/tcp/hub.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "comm/group/tcp/tcp_transport.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr auto kSoon = 60s;  // far beyond what is needed

Socket::Clock::time_point soon() { return Socket::Clock::now() + kSoon; }

/// The bytes of a greeting that a hub takes.
Hello hello_of(int rank, int size) {
  Hello hello;
  hello.rank = rank;
  hello.size = size;
  return hello;
}

/// A hub of two ranks, beside which a test is rank 1.
class Hub : public testing::Test {
 protected:
  Hub() : Hub(listen_at(0, true), connected_pair()) {}
  Hub(Socket listener, std::pair<Socket, Socket> ends)
      : port_(listener.port()),
        hub_(std::move(listener), std::move(ends.first), hello_of(0, 2), kSoon),
        rank0_(std::move(ends.second), 0, "rank 0", kSoon) {}

  Socket connect() const {
    std::string reason;
    return connect_to("127.0.0.1", port_, soon(), reason);
  }
  /// Rank 1, once it is welcome.
  Socket rank1() const {
    Socket socket = connect();
    const Hello hello = hello_of(1, 2);
    Welcome welcome;
    EXPECT_TRUE(socket.send_all(&hello, sizeof hello, soon()));
    EXPECT_TRUE(socket.receive_all(&welcome, sizeof welcome, soon()));
    EXPECT_EQ(welcome.answer, Welcome::Answer::kWelcome);
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
  bool is_closed(const Socket& socket) const {
    char byte = 0;
    const auto began = Socket::Clock::now();
    return !socket.receive_all(&byte, 1, soon()) && Socket::Clock::now() < began + kSoon;
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

TEST_F(Hub, AStrangerWithoutTheSecretIsNoRank) {
  const Socket stranger = connect();
  Hello hello = hello_of(1, 2);
  hello.run = ShortText::of("guessed");
  Welcome welcome;
  EXPECT_TRUE(stranger.send_all(&hello, sizeof hello, soon()));
  EXPECT_TRUE(stranger.receive_all(&welcome, sizeof welcome, soon()));
  EXPECT_EQ(welcome.answer, Welcome::Answer::kOtherRun);
  EXPECT_EQ(welcome.hub.run.str(), "") << "what would let it in";
  EXPECT_TRUE(is_closed(stranger));
  rank1();
}

// Its machine has several addresses.
TEST_F(Hub, ARankThatAsksTwiceIsWelcomeOnce) {
  const Socket first = rank1();
  const Socket second = connect();
  const Hello hello = hello_of(1, 2);
  Welcome welcome;
  EXPECT_TRUE(second.send_all(&hello, sizeof hello, soon()));
  EXPECT_TRUE(second.receive_all(&welcome, sizeof welcome, soon()));
  EXPECT_EQ(welcome.answer, Welcome::Answer::kOtherRun) << "no refusal, which would end the rank";
  send(first, {.kind = FrameKind::kContribution, .operation = {.kind = OperationKind::kBarrier}});
  EXPECT_EQ(barrier(), "passed");
}

TEST_F(Hub, OneThatWasWelcomeAndLeftWithoutAWordMayComeAgain) {
  rank1();
  Socket again;
  // The hub sees the end of the first connection a moment later.
  for (Welcome welcome; !again; std::this_thread::sleep_for(1ms)) {
    Socket socket = connect();
    const Hello hello = hello_of(1, 2);
    ASSERT_TRUE(socket.send_all(&hello, sizeof hello, soon()));
    ASSERT_TRUE(socket.receive_all(&welcome, sizeof welcome, soon()));
    if (welcome.answer == Welcome::Answer::kWelcome) again = std::move(socket);
  }
  send(again, {.kind = FrameKind::kContribution, .operation = {.kind = OperationKind::kBarrier}});
  EXPECT_EQ(barrier(), "passed");
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
    const TcpHub hub(std::move(listener), std::move(ends.first), hello_of(0, 2), kSoon);
    TcpLink link(std::move(ends.second), 0, "rank 0", kSoon);
    std::string reason;
    const Socket socket = connect_to("127.0.0.1", port, soon(), reason);
    const Hello hello = hello_of(1, 2);
    EXPECT_TRUE(socket.send_all(&hello, sizeof hello, soon()));
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

// The run is not done, whatever number came.
TEST(HubAlone, MakesNoSuccessOfAnAbort) {
  Socket listener = listen_at(0, true);
  const std::uint16_t port = listener.port();
  std::pair<Socket, Socket> ends = connected_pair();
  const TcpHub hub(std::move(listener), std::move(ends.first), hello_of(0, 2), kSoon);
  std::string reason;
  const Socket rank = connect_to("127.0.0.1", port, soon(), reason);
  const Hello hello = hello_of(1, 2);
  const FrameHeader abort{.kind = FrameKind::kAbort, .number = 0};
  Welcome welcome;
  EXPECT_TRUE(rank.send_all(&hello, sizeof hello, soon()));
  EXPECT_TRUE(rank.receive_all(&welcome, sizeof welcome, soon()));
  EXPECT_TRUE(rank.send_all(&abort, sizeof abort, soon()));
  FrameHeader told;
  EXPECT_TRUE(ends.second.receive_all(&told, sizeof told, soon()));
  EXPECT_EQ(told.kind, FrameKind::kAbort);
  EXPECT_EQ(told.number, static_cast<std::int64_t>(ExitCode::kPeerLost));
}

TEST(FrameReader, TakesNoHarmFromAnyBytes) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const auto [ours, theirs] = connected_pair();
    FrameHeader header{.kind = FrameKind::kError, .bytes = 10};
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes += "0123456789";
    for (int flips = i % 5; flips > 0; --flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(bytes.size() - random() % 4);
    EXPECT_EQ(theirs.send(bytes.data(), bytes.size()), static_cast<std::ptrdiff_t>(bytes.size()));
    theirs.end_sending();
    FrameReader reader;
    while (const std::optional<Frame> frame = reader.next(ours)) {
      ASSERT_TRUE(is_sane(frame->header));
      ASSERT_EQ(frame->payload->size(), frame->header.bytes);
      decode_error(frame->payload);
    }
    EXPECT_TRUE(reader.closed());
  }
}

TEST(FrameReader, PutsPiecesTogether) {
  const auto [ours, theirs] = connected_pair();
  const PeerError error("what", "advice");
  const Payload payload = encode(error);
  FrameHeader header{.kind = FrameKind::kError, .channel = 3, .bytes = payload->size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += text_of(payload);
  FrameReader reader;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    theirs.send(&bytes[i], 1);
    ASSERT_FALSE(reader.next(ours));
  }
  theirs.send(&bytes.back(), 1);
  const std::optional<Frame> frame = reader.next(ours);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.channel, 3);
  EXPECT_STREQ(decode_error(frame->payload).what(), "what");
  EXPECT_EQ(decode_error(frame->payload).advice(), "advice");
}

}  // namespace
}  // namespace lockstep::comm
