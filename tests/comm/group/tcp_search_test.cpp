// SPDX-License-Identifier: Apache-2.0
// How a rank without MPI finds the hub of its run among others.
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/group/tcp/rendezvous.h"
#include "comm/group/tcp/tcp_transport.h"
#include "runtime/base/error.h"
#include "tests/comm/group/tcp_fixture.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;

/// The hub of a run beside.
class OtherHub {
 public:
  OtherHub(Socket listener, const Hello& hello, const RunKey& key)
      : OtherHub(connected_pair(), std::move(listener), hello, key) {}

 private:
  OtherHub(std::pair<Socket, Socket> ends, Socket listener, const Hello& hello, const RunKey& key)
      : rank0_(std::move(ends.second)), hub_(std::move(listener), std::move(ends.first), hello, key, kTcpSoon) {}
  Socket rank0_;
  TcpHub hub_;
};

Hello rank0_of(int size, const std::string& job_hash) {
  Hello hello;
  hello.size = size;
  hello.job_hash = ShortText::of(job_hash);
  return hello;
}

/// The text of the error that ends rank 1 of 2; "met" where none does.
template <class Kind>
std::string error_of_rank1(const LaunchEnvironment& environment, std::chrono::milliseconds timeout) {
  try {
    TcpMembership(environment, {.timeout = timeout, .job_hash = "b"});
  } catch (const Kind& error) {
    return error.what();
  }
  return "met";
}

/// Whether each of two places is called in a moment, the first of which is the better one.
std::pair<bool, bool> called(std::chrono::milliseconds head_start) {
  const Socket better = listen_at(0, true);
  const Socket other = listen_at(0, true);
  HubSearch search({{loopback_address(), better.port()}, {loopback_address(), other.port()}}, rank0_of(2, ""), {},
                   "rank 0", head_start);
  EXPECT_FALSE(search.next(Socket::Clock::now() + 100ms)) << "nobody answers there";
  return {static_cast<bool>(better.accept()), static_cast<bool>(other.accept())};
}

TEST(HeadStart, IsThatOfABetterPlace) {
  EXPECT_EQ(called(1h), std::pair(true, false));
  EXPECT_EQ(called(20ms), std::pair(true, true));
}

/// A launcher's, of ranks that are threads.
class BoardOfThreads final : public LaunchBoard {
 public:
  std::string word_of_rank_0(const std::string&, const std::string& own) override {
    if (!own.empty()) word_.set_value(own);
    return said_.get();
  }

 private:
  std::promise<std::string> word_;
  std::shared_future<std::string> said_ = word_.get_future().share();
};

// Variables of torchrun do not count.
TEST_F(Tcp, RanksOfAMpirunMeetWhereRank0Says) {
  variables({{"MASTER_ADDR", "127.0.0.3"}, {"MASTER_PORT", "1"}, {"LOCKSTEP_INTERFACE", "lo"}});
  for (const int ranks_a_host : {3, 1}) {
    BoardOfThreads board;
    std::vector<std::future<void>> ranks;
    for (const int rank : {2, 1, 0}) {
      ranks.push_back(std::async(std::launch::async, [&board, rank, ranks_a_host] {
        const LaunchEnvironment launched{LaunchEnvironment::Launcher::kMpi, rank, 3, rank % ranks_a_host, ranks_a_host};
        const auto membership =
            std::make_shared<TcpMembership>(launched, CommunicatorOptions{.timeout = kTcpSoon}, &board);
        TcpTransport(membership).meet({.kind = OperationKind::kBarrier});
      }));
    }
    for (std::future<void>& rank : ranks) rank.get();
  }
}

TEST_F(Tcp, AHubOfAnotherSizeEndsTheSearchWhereThereIsOnePortOnly) {
  Socket listener = listen_at(0, true);
  variables({{"LOCKSTEP_MASTER_PORT", std::to_string(listener.port())}});
  const TcpRendezvous where = TcpRendezvous::from_environment(environment(1, 2));
  const OtherHub other(std::move(listener), rank0_of(3, "b"), where.key);
  EXPECT_EQ(error_of_rank1<EnvironmentError>(environment(1, 2), kTcpSoon),
            "rank 0 refuses rank 1: it was told of 2 ranks, rank 0 of 3");
}

TEST_F(Tcp, AHubOfAnotherJobIsNamedWhenPatienceEnds) {
  const TcpRendezvous where = TcpRendezvous::from_environment(environment(1, 2));
  const OtherHub job(listen_first(), rank0_of(2, "a"), where.key);
  EXPECT_THAT(error_of_rank1<PeerError>(environment(1, 2), kPatience),
              HasSubstr("other settings than rank 0: b, rank 0 a"));
}

// It may be this run's, with a wrong size; one of another job is another run's. A search of its own: the hub of the
// other job ends a rank that has called it for RankClaims::kDecided, which two searches together last.
TEST_F(Tcp, AHubOfAnotherSizeIsNamedBeforeOneOfAnotherJob) {
  const TcpRendezvous where = TcpRendezvous::from_environment(environment(1, 2));
  const OtherHub job(listen_first(), rank0_of(2, "a"), where.key);
  const OtherHub size(listen_first(), rank0_of(3, "b"), where.key);
  EXPECT_THAT(error_of_rank1<EnvironmentError>(environment(1, 2), kPatience),
              HasSubstr("told of 2 ranks, rank 0 of 3"));
}

TEST_F(Tcp, ARankWithAnotherJobInThePlaceOfAMissingOneEndsBoth) {
  const TcpRendezvous where = TcpRendezvous::from_environment(environment(1, 2));
  std::pair<Socket, Socket> ends = connected_pair();
  const TcpHub hub(listen_first(), std::move(ends.first), rank0_of(2, "a"), where.key, kTcpSoon, TcpHub::kGreeting,
                   RankClaims(50ms, 200ms));
  TcpLink rank0(std::move(ends.second), 0, "rank 0", kTcpSoon);
  std::future<std::string> error =
      std::async(std::launch::async, [] { return error_of_rank1<PeerError>(environment(1, 2), kTcpSoon); });
  const auto names_both = AllOf(HasSubstr("rank 1 (process"), HasSubstr("was started with another job"),
                                HasSubstr("other settings than rank 0: b, rank 0 a"));
  try {
    rank0.exchange(0, {.kind = OperationKind::kJoin}, nullptr, 0, "start");
    FAIL() << "rank 1 has met rank 0";
  } catch (const PeerError& met) {
    EXPECT_THAT(met.what(), names_both);
  }
  EXPECT_THAT(error.get(), names_both);
}

/// Somebody who has come.
Socket caller_of(const Socket& listener) {
  Socket caller;
  for (const auto end = tcp_soon(); !caller && Socket::Clock::now() < end; std::this_thread::sleep_for(1ms)) {
    caller = listener.accept();
  }
  return caller;
}

class TcpRefusal : public Tcp, public testing::WithParamInterface<Welcome::Answer> {};

// One that has no proof that it is the run's hub, whatever it answers.
TEST_P(TcpRefusal, OfAStrangerIsPassedBy) {
  const Welcome::Answer answer = GetParam();
  const Socket listener = listen_first();
  const auto meet = [](int rank) { TcpTransport(join(rank, 2)).meet({.kind = OperationKind::kBarrier}); };
  std::future<void> rank1 = std::async(std::launch::async, meet, 1);
  {
    const Socket caller = caller_of(listener);
    const Greeting greeting;
    const Welcome refusal{.answer = answer};
    Hello hello;
    EXPECT_TRUE(caller.send_all(&greeting, sizeof greeting, tcp_soon()));
    EXPECT_TRUE(caller.receive_all(&hello, sizeof hello, tcp_soon()));
    EXPECT_TRUE(caller.send_all(&refusal, sizeof refusal, tcp_soon()));
    // It has heard it and goes on.
    caller_of(listener);
  }
  meet(0);
  rank1.get();
}

INSTANTIATE_TEST_SUITE_P(Answers, TcpRefusal,
                         testing::Values(Welcome::Answer::kRefused, Welcome::Answer::kDifferentJob));

TEST_F(Tcp, AHubOfAnotherVersionIsNamed) {
  const Socket listener = listen_at(0, true);
  variables({{"LOCKSTEP_MASTER_PORT", std::to_string(listener.port())}});
  std::future<std::string> error =
      std::async(std::launch::async, [] { return error_of_rank1<EnvironmentError>(environment(1, 2), kTcpSoon); });
  const Socket caller = caller_of(listener);
  Greeting greeting;
  ++greeting.version;
  caller.send(&greeting, sizeof greeting);
  EXPECT_THAT(error.get(), HasSubstr("another version of lockstep"));
}

TEST_F(Tcp, AHubWithoutTheSecretGetsNoRank) {
  const TcpRendezvous without = TcpRendezvous::from_environment(environment(0, 2));
  const OtherHub other(listen_first(), rank0_of(2, ""), without.key);
  variables({{"LOCKSTEP_SECRET", "known to the ranks"}});
  as_ranks(2, [](const std::shared_ptr<TcpMembership>& membership) {
    TcpTransport(membership).meet({.kind = OperationKind::kBarrier});
  });
}

// It welcomes everybody.
TEST_F(Tcp, AWelcomeWithoutProofIsNone) {
  const Socket listener = listen_at(0, true);
  variables({{"LOCKSTEP_MASTER_PORT", std::to_string(listener.port())}});
  std::atomic<bool> done = false;
  std::thread welcoming([&] {
    while (!done) {
      std::this_thread::sleep_for(1ms);
      const Socket caller = listener.accept();
      if (!caller) continue;
      const Greeting greeting;
      const Welcome welcome;
      Hello hello;
      if (!caller.send_all(&greeting, sizeof greeting, tcp_soon())) continue;
      if (caller.receive_all(&hello, sizeof hello, tcp_soon())) caller.send_all(&welcome, sizeof welcome, tcp_soon());
    }
  });
  EXPECT_THAT(error_of_rank1<PeerError>(environment(1, 2), kPatience), HasSubstr("not rank 0 of a run"));
  done = true;
  welcoming.join();
}

}  // namespace
}  // namespace lockstep::comm
