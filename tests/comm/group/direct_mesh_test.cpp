// SPDX-License-Identifier: Apache-2.0
// How ranks connect to each other directly: who is let in, and what is said of ranks that cannot reach each other.
#include "comm/group/tcp/direct_mesh.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/group/tcp/direct_door.h"
#include "runtime/base/error.h"
#include "tests/comm/group/hub_caller.h"
#include "tests/comm/group/tcp_fixture.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// Rank 0's door in channel 3 of two ranks, at which a test calls as rank 1.
class Door : public testing::Test {
 protected:
  Door() : Door(listen_at(0, true)) {}
  explicit Door(Socket listener)
      : port_(listener.port()), door_(std::move(listener), hello_in(0, 3), {hello_in(0, 3), hello_in(1, 3)}, 2, kKey) {}

  static Hello hello_in(int rank, std::int32_t channel) {
    Hello hello = hello_of(rank, 2);
    hello.channel = channel;
    return hello;
  }
  Socket connect() const {
    std::string reason;
    return connect_to("127.0.0.1", port_, soon(), reason);
  }
  /// What a caller is answered, who then takes the connection and waits until it ends, or does not.
  std::future<Welcome> call(const Hello& hello, const RunKey& key, bool takes) const {
    return std::async(std::launch::async, [this, hello, key, takes] {
      const Socket socket = connect();
      const Welcome welcome = answer_to(socket, hello, key);
      if (takes) socket.send(&kTaken, 1);
      if (takes) is_closed(socket);
      return welcome;
    });
  }

  std::uint16_t port_;
  DirectDoor door_;
};

TEST_F(Door, ARankOfTheChannelIsLetIn) {
  Hello hello = hello_in(1, 3);
  hello.lane = 1;
  std::future<Welcome> caller = call(hello, kKey, true);
  std::optional<DirectDoor::Guest> guest = door_.next(soon());
  ASSERT_TRUE(guest);
  EXPECT_EQ(guest->place, 1);
  EXPECT_EQ(guest->lane, 1);
  guest.reset();
  const Welcome welcome = caller.get();
  EXPECT_EQ(welcome.answer, Welcome::Answer::kWelcome);
  EXPECT_EQ(welcome.hub.rank, 0);
}

TEST_F(Door, OthersAreSentAwayAndDoNotStandInTheWay) {
  const Socket silent = connect();
  Hello other_lane = hello_in(1, 3);
  other_lane.lane = 2;
  Hello other_process = hello_in(1, 3);
  other_process.process = 99;
  const std::vector<std::pair<Hello, RunKey>> strangers{{hello_in(1, 3), key_of("guessed")},
                                                        {hello_in(1, 4), kKey},
                                                        {hello_of(1, 2), kKey},
                                                        {hello_in(2, 3), kKey},
                                                        {other_lane, kKey},
                                                        {other_process, kKey}};
  for (const auto& [hello, key] : strangers) {
    std::future<Welcome> stranger = call(hello, key, true);
    while (stranger.wait_for(0s) != std::future_status::ready) {
      EXPECT_FALSE(door_.next(Socket::Clock::now() + 10ms));
    }
    EXPECT_EQ(stranger.get().answer, Welcome::Answer::kOtherRun);
  }
  std::future<Welcome> rank = call(hello_in(1, 3), kKey, true);
  EXPECT_TRUE(door_.next(soon()));
  EXPECT_EQ(rank.get().answer, Welcome::Answer::kWelcome);
}

// It had no patience to wait for the welcome, and calls again.
TEST_F(Door, OneThatLeavesBeforeItTakesTheConnectionDoesNotCount) {
  std::future<Welcome> hasty = call(hello_in(1, 3), kKey, false);
  while (hasty.wait_for(0s) != std::future_status::ready) {
    EXPECT_FALSE(door_.next(Socket::Clock::now() + 10ms));
  }
  EXPECT_EQ(hasty.get().answer, Welcome::Answer::kWelcome);
  EXPECT_FALSE(door_.next(Socket::Clock::now() + 10ms));
  std::future<Welcome> again = call(hello_in(1, 3), kKey, true);
  EXPECT_TRUE(door_.next(soon()));
  again.get();
}

/// Connects as one of three ranks, with cards that `change` has been at; the error, if any.
std::string connected(const std::shared_ptr<TcpMembership>& membership, const RunKey& key,
                      const std::function<void(std::vector<DirectCard>&)>& change) {
  TcpTransport world(membership);
  Socket listener = listen_at(0, true);
  const DirectCard own = direct_card(*membership, listener, 0);
  std::vector<DirectCard> cards = gather(world, Operation{.kind = OperationKind::kConnect}, own);
  change(cards);
  std::string outcome = "connected";
  try {
    DirectMesh mesh = connect_ranks(*membership, std::move(listener), world.group(), cards, key, "direct connections");
    // Nobody leaves before all have come so far.
    world.meet({.kind = OperationKind::kBarrier});
  } catch (const PeerError& error) {
    membership->link().fail(error);
    outcome = error.what();
  }
  return outcome;
}

/// The outcome of each of three ranks, of which rank 2 has other cards, or another key.
std::vector<std::string> outcomes(const std::function<void(std::vector<DirectCard>&)>& change,
                                  std::optional<RunKey> other_key,
                                  const std::function<std::shared_ptr<TcpMembership>(int)>& join) {
  std::vector<std::future<std::string>> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.push_back(std::async(std::launch::async, [&, rank] {
      const std::shared_ptr<TcpMembership> membership = join(rank);
      const RunKey key = rank == 2 && other_key ? *other_key : membership->rendezvous().key;
      return connected(
          membership, key, rank == 2 ? change : [](std::vector<DirectCard>&) {});
    }));
  }
  std::vector<std::string> all;
  for (std::future<std::string>& rank : ranks) all.push_back(rank.get());
  return all;
}

TEST_F(Tcp, RanksThatReachRank0ButNotEachOtherAreBothNamed) {
  const auto elsewhere = [](std::vector<DirectCard>& cards) { cards[1].address = ShortText::of("240.0.0.1"); };
  const auto join_patiently = [](int rank) { return join(rank, 3, kPatience); };
  const std::vector<std::string> all = outcomes(elsewhere, std::nullopt, join_patiently);
  EXPECT_THAT(all[2], HasSubstr("rank 2 (process"));
  EXPECT_THAT(all[2], HasSubstr("cannot connect to rank 1 (process"));
  EXPECT_THAT(all[2], HasSubstr("at 240.0.0.1, port "));
  EXPECT_THAT(all[2], HasSubstr("within 5.0 s"));
  // Rank 1 hears of it, or comes to the end of its own patience.
  EXPECT_THAT(all[1], HasSubstr("rank 2 (process"));
  EXPECT_THAT(all[1], HasSubstr("rank 1 (process"));
}

TEST_F(Tcp, ARankWithAnotherSecretGetsNoDirectConnection) {
  const auto join_patiently = [](int rank) { return join(rank, 3, kPatience); };
  const std::vector<std::string> all = outcomes([](auto&) {}, key_of("guessed"), join_patiently);
  EXPECT_THAT(all[2], HasSubstr("cannot connect to rank 0 (process"));
  EXPECT_THAT(all[2], HasSubstr("it belongs to another run"));
  EXPECT_THAT(all[0], HasSubstr("rank 2 (process"));
}

TEST_F(Tcp, RanksConnectDirectly) {
  const std::vector<std::string> all = outcomes([](auto&) {}, std::nullopt, [](int rank) { return join(rank, 3); });
  EXPECT_THAT(all, testing::Each("connected"));
}

TEST_F(Tcp, SeveralConnectionsOfTwoRanksChangeNoBit) {
  std::vector<std::vector<float>> results;
  for (const char* connections : {"1", "3"}) {
    setenv("LOCKSTEP_TCP_CONNECTIONS", connections, 1);
    std::mutex mutex;
    as_ranks(3, [&](const std::shared_ptr<TcpMembership>& membership) {
      TcpTransport world(membership);
      std::vector<float> data(100003);
      for (std::size_t i = 0; i < data.size(); ++i) {
        data[i] = std::sin(static_cast<float>(i)) * std::exp2(static_cast<float>(membership->rank() * 5));
      }
      const Operation operation{.kind = OperationKind::kAllReduce, .dtype = DType::kFloat32, .count = 100003};
      world.all_reduce(operation, {}, reinterpret_cast<std::byte*>(data.data()), operation.count);
      const std::lock_guard lock(mutex);
      results.push_back(std::move(data));
    });
  }
  unsetenv("LOCKSTEP_TCP_CONNECTIONS");
  ASSERT_EQ(results.size(), 6u);
  EXPECT_THAT(results, testing::Each(results.front()));
}

TEST_F(Tcp, ANumberOfConnectionsThatIsNoneIsNamed) {
  for (const char* wrong : {"0", "17", "many"}) {
    setenv("LOCKSTEP_TCP_CONNECTIONS", wrong, 1);
    EXPECT_THROW(direct_lanes(), UsageError) << wrong;
  }
  unsetenv("LOCKSTEP_TCP_CONNECTIONS");
  EXPECT_EQ(direct_lanes(), 1);
}

}  // namespace
}  // namespace lockstep::comm
