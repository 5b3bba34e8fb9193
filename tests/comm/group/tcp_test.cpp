// SPDX-License-Identifier: Apache-2.0
// Ranks without MPI as threads of one process: what they send each other, and the addresses at which they meet.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "comm/group/host_communicator.h"
#include "comm/group/network_choice.h"
#include "comm/group/tcp/rendezvous.h"
#include "comm/group/tcp/tcp_transport.h"
#include "runtime/base/error.h"
#include "tests/comm/group/tcp_fixture.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

TEST_F(Tcp, ManyPiecesInManyChannelsAtOnce) {
  as_ranks(3, [](const std::shared_ptr<TcpMembership>& membership) {
    const auto first = std::make_shared<TcpTransport>(membership);
    const auto communicator = make_host_communicator(first, std::make_shared<Neighbours>(*first, false));
    Communicator& group = *communicator;
    const auto gradients = group.duplicate("gradients");
    const Stream worker = Stream::worker("gradients");
    // Many pieces and one element more.
    const Tensor large = Tensor::zeros({(std::int64_t{2} << 20) + 1}, DType::kFloat32);
    const Tensor small = Tensor::zeros({16}, DType::kFloat32);
    for (int step = 0; step < 3; ++step) {
      for (float& value : large.mutable_as<float>()) value = static_cast<float>(group.rank());
      gradients->all_reduce(large, ReduceOp::kSum, 1.0f, worker);
      for (int i = 0; i < 20; ++i) group.all_reduce(small, ReduceOp::kMax, 1.0f, Stream::calling_thread());
      worker.synchronize();
      EXPECT_EQ(std::ranges::count(large.as<float>(), 3.0f), large.numel());
    }
    const Tensor gathered = Tensor::zeros({large.numel() * 3}, DType::kFloat32);
    group.all_gather(large, gathered, Stream::calling_thread());
    EXPECT_EQ(std::ranges::count(gathered.as<float>(), 3.0f), gathered.numel());
    const Tensor slice = Tensor::zeros({large.numel()}, DType::kFloat32);
    group.reduce_scatter(gathered, slice, ReduceOp::kSum, Stream::calling_thread());
    EXPECT_EQ(std::ranges::count(slice.as<float>(), 9.0f), slice.numel());
  });
}

TEST_F(Tcp, OneWorldAfterTheOther) {
  as_ranks(3, [](std::shared_ptr<TcpMembership> membership) {
    const int rank = membership->rank();
    for (int i = 0; i < 20; ++i) {
      TcpTransport(membership).meet({.kind = OperationKind::kBarrier});
      membership.reset();
      membership = join(rank, 3);
    }
  });
}

TEST_F(Tcp, StrangersAtTheFirstPortsAreNoObstacle) {
  // One takes connections and says nothing, one says something else.
  const int base = std::stoi(store_.port()) + 1;
  const Socket silent = listen_at(static_cast<std::uint16_t>(base), true);
  const Socket chatty = listen_at(static_cast<std::uint16_t>(base + 1), true);
  std::atomic<bool> done = false;
  std::thread chatting([&] {
    while (!done) {
      if (const Socket caller = chatty ? chatty.accept() : Socket()) caller.send("HTTP/1.1 400 Bad Request\r\n", 26);
      std::this_thread::sleep_for(1ms);
    }
  });
  as_ranks(2, [](const std::shared_ptr<TcpMembership>& membership) {
    TcpTransport(membership).meet({.kind = OperationKind::kBarrier});
  });
  done = true;
  chatting.join();
}

/// Somebody who takes connections and says nothing.
class Silent {
 public:
  explicit Silent(Socket listener) : listener_(std::move(listener)) {}
  /// Whether somebody waits for his word now.
  bool is_asked() {
    while (Socket caller = listener_.accept()) callers_.push_back(std::move(caller));
    char byte = 0;
    std::erase_if(callers_, [&](const Socket& caller) { return caller.receive(&byte, 1) < 0; });
    return !callers_.empty();
  }

 private:
  Socket listener_;
  std::vector<Socket> callers_;
};

// Asked one after the other, no more of them than there are ranks would ever be asked at a time.
TEST_F(Tcp, SilentStrangersAtAllPortsButOneAreAskedSideBySide) {
  const int base = std::stoi(store_.port()) + 1;
  std::vector<Silent> silent;
  for (int i = 0; i + 1 < TcpRendezvous::kPorts; ++i) {
    // Another test may have one of them.
    Socket listener = listen_at(static_cast<std::uint16_t>(base + i), true);
    if (listener) silent.emplace_back(std::move(listener));
  }
  const auto meet = [](int rank) { TcpTransport(join(rank, 3)).meet({.kind = OperationKind::kBarrier}); };
  std::vector<std::future<void>> ranks;
  for (const int rank : {1, 2}) ranks.push_back(std::async(std::launch::async, meet, rank));
  // One that has been silent for long is left and asked again.
  bool asked = false;
  for (const auto end = tcp_soon() - kTcpSoon / 2; !asked && Socket::Clock::now() < end;
       std::this_thread::sleep_for(1ms)) {
    asked = std::ranges::count_if(silent, &Silent::is_asked) == static_cast<std::ptrdiff_t>(silent.size());
  }
  EXPECT_TRUE(asked);
  ranks.push_back(std::async(std::launch::async, meet, 0));
  for (std::future<void>& rank : ranks) rank.get();
}

/// Starts a run of so many ranks, whose names say what it is.
std::vector<std::future<void>> start_run(int size, const std::string& job, const std::string& hash,
                                         const std::function<LaunchEnvironment(int, int)>& environment) {
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::async(std::launch::async, [=] {
      const CommunicatorOptions options{.timeout = kTcpSoon, .job = job, .job_hash = hash};
      const auto membership = std::make_shared<TcpMembership>(environment(rank, size), options);
      TcpTransport(membership).meet({.kind = OperationKind::kBarrier});
    }));
  }
  return ranks;
}

// In each pair one is a run of another job, of another hash, and of another size.
TEST_F(Tcp, RunsOfOnePortPassEachOtherBy) {
  std::vector<std::future<void>> ranks;
  for (const auto& [size, job, hash] : {std::tuple(2, "first", "a"), std::tuple(2, "second", "a"),
                                        std::tuple(2, "second", "b"), std::tuple(3, "second", "b")}) {
    for (std::future<void>& rank : start_run(size, job, hash, environment)) ranks.push_back(std::move(rank));
  }
  for (std::future<void>& rank : ranks) rank.get();
}

// They are to meet, and to say what they differ in.
TEST_F(Tcp, RanksOfANamedRunMeetWhateverTheirJobs) {
  variables({{"TORCHELASTIC_RUN_ID", "mine"}});
  std::vector<std::future<void>> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.push_back(std::async(std::launch::async, [=] {
      const CommunicatorOptions options{.timeout = kTcpSoon, .job = "digits", .job_hash = std::to_string(rank)};
      const auto membership = std::make_shared<TcpMembership>(environment(rank, 2), options);
      TcpTransport(membership).meet({.kind = OperationKind::kBarrier});
    }));
  }
  for (std::future<void>& rank : ranks) rank.get();
}

TEST_F(Tcp, ARunHasTheKeyOfItsSecretAndOfTorchrunsFolder) {
  const auto where = [&] { return TcpRendezvous::from_environment(environment(0, 2)); };
  const TcpRendezvous open = where();
  EXPECT_FALSE(open.named);
  EXPECT_EQ(where().key, open.key);
  variables({{"LOCKSTEP_SECRET", "known to the ranks"}});
  EXPECT_NE(where().key, open.key);
  EXPECT_TRUE(where().named);
  unsetenv("LOCKSTEP_SECRET");
  variables({{"TORCHELASTIC_RUN_ID", "none"}});
  EXPECT_FALSE(where().named) << "what torchrun says where it was given none";
  variables({{"TORCHELASTIC_RUN_ID", "mine"}});
  EXPECT_TRUE(where().named);
  unsetenv("TORCHELASTIC_RUN_ID");
  variables({{"GROUP_WORLD_SIZE", "1"}, {"TORCHELASTIC_ERROR_FILE", "/tmp/a/attempt_0/0/error.json"}});
  const TcpRendezvous first = where();
  EXPECT_TRUE(first.named);
  variables({{"TORCHELASTIC_ERROR_FILE", "/tmp/a/attempt_0/1/error.json"}});
  EXPECT_EQ(where().key, first.key);
  variables({{"TORCHELASTIC_ERROR_FILE", "/tmp/b/attempt_0/0/error.json"}});
  EXPECT_NE(where().key, first.key);
}

TEST_F(Tcp, APortOfOnesOwnChoice) {
  const std::string free = Store().port();
  variables({{"LOCKSTEP_MASTER_PORT", free}});
  as_ranks(2, [](const std::shared_ptr<TcpMembership>& membership) {
    TcpTransport(membership).meet({.kind = OperationKind::kBarrier});
  });
}

TEST_F(Tcp, APortThatIsTakenIsNamed) {
  variables({{"LOCKSTEP_MASTER_PORT", store_.port()}});
  try {
    join(0, 2);
    FAIL();
  } catch (const EnvironmentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("port " + store_.port()));
    EXPECT_THAT(error.what(), HasSubstr("in use"));
    EXPECT_THAT(error.advice(), HasSubstr("LOCKSTEP_MASTER_PORT"));
  }
}

TEST_F(Tcp, WhatIsNoPortIsNamed) {
  for (const char* wrong : {"0", "65536", "http"}) {
    variables({{"MASTER_PORT", wrong}});
    try {
      join(0, 2);
      FAIL();
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("MASTER_PORT"));
      EXPECT_THAT(error.what(), HasSubstr(wrong));
    }
  }
}

TEST_F(Tcp, PortsGoOnFromTheLowestBehindTheHighest) {
  variables({{"MASTER_PORT", "65530"}});
  const TcpRendezvous where = TcpRendezvous::from_environment(environment(0, 2));
  EXPECT_EQ(where.ports.front(), 65531);
  EXPECT_EQ(where.ports[4], 65535);
  EXPECT_EQ(where.ports[5], 1024);
  EXPECT_EQ(where.ports.size(), static_cast<std::size_t>(TcpRendezvous::kPorts));
}

TEST_F(Tcp, RanksOfSeveralMachinesUseTheAddress) {
  for (const char* address : {"127.0.0.1", "localhost", "::1"}) {
    variables({{"MASTER_ADDR", address}});
    // As if there were three more ranks on another machine.
    LaunchEnvironment elsewhere = environment(1, 4);
    elsewhere.local_size = 1;
    TcpRendezvous where = TcpRendezvous::from_environment(elsewhere);
    EXPECT_THAT(where.addresses, testing::ElementsAre(address));
    where.ports = {0};
    const Socket listener = where.listen();
    std::string reason;
    // Not every machine has IPv6.
    EXPECT_TRUE(connect_to(address, listener.port(), tcp_soon(), reason) || std::string(address) == "::1") << reason;
  }
}

TEST_F(Tcp, RanksOfSeveralMachinesListenAtTheChosenInterfaceAlone) {
  variables({{"MASTER_ADDR", "127.0.0.1"}, {kInterfaceVariable, "127.0.0.0/8"}});
  LaunchEnvironment elsewhere = environment(0, 4);
  elsewhere.local_size = 1;
  TcpRendezvous where = TcpRendezvous::from_environment(elsewhere);
  EXPECT_EQ(where.own_address, "127.0.0.1");
  where.ports = {0};
  for (const Socket& listener : {where.listen(), where.listen_to_ranks(0)}) {
    EXPECT_EQ(listener.own_address(), "127.0.0.1");
    std::string reason;
    EXPECT_FALSE(connect_to("127.0.0.2", listener.port(), tcp_soon(), reason)) << "an address of the same interface";
    EXPECT_TRUE(connect_to("127.0.0.1", listener.port(), tcp_soon(), reason)) << reason;
  }
  elsewhere.local_size = 4;
  EXPECT_EQ(TcpRendezvous::from_environment(elsewhere).own_address, "") << "ranks of one machine use its loopback";
}

TEST_F(Tcp, AnAddressWhereNobodyIsIsNamed) {
  variables({{"MASTER_ADDR", "127.0.0.3"}});
  LaunchEnvironment elsewhere = environment(1, 4);
  elsewhere.local_size = 1;
  try {
    TcpMembership(elsewhere, {.timeout = 100ms});
    FAIL();
  } catch (const PeerError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 0 did not arrive within 0.1 s"));
    EXPECT_THAT(error.what(), HasSubstr("127.0.0.3"));
    EXPECT_THAT(error.what(), HasSubstr("refused"));
  }
}

}  // namespace
}  // namespace lockstep::comm
