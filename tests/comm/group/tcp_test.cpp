// SPDX-License-Identifier: Apache-2.0
// Ranks without MPI as threads of one process: what they send each other, and how they find each other.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <future>
#include <map>
#include <random>
#include <thread>

#include "comm/group/host_communicator.h"
#include "comm/group/tcp/rendezvous.h"
#include "comm/group/tcp/tcp_transport.h"
#include "runtime/tensor/error.h"

namespace lockstep::comm {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::Not;

constexpr auto kSoon = 60s;  // far beyond what is needed

Socket::Clock::time_point soon() { return Socket::Clock::now() + kSoon; }

/// A port that is held, as torchrun's agent holds MASTER_PORT.
class Store {
 public:
  Store() : socket_(listen_at(0, true)) {}
  std::string port() const { return std::to_string(socket_.port()); }

 private:
  Socket socket_;
};

class Tcp : public testing::Test {
 protected:
  Tcp() {
    variables({{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", store_.port()}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  }
  ~Tcp() override {
    for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "LOCKSTEP_MASTER_PORT"}) {
      unsetenv(name);
    }
  }
  static void variables(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
  }
  static LaunchEnvironment environment(int rank, int size) {
    return {LaunchEnvironment::Launcher::kTorchrun, rank, size, rank, size};
  }
  static std::shared_ptr<TcpMembership> join(int rank, int size, std::chrono::milliseconds timeout = kSoon) {
    return std::make_shared<TcpMembership>(environment(rank, size), CommunicatorOptions{.timeout = timeout});
  }
  /// Calls f(membership) as every rank.
  template <class F>
  static void as_ranks(int size, F f, std::chrono::milliseconds timeout = kSoon) {
    std::vector<std::future<void>> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back(std::async(std::launch::async, [=] { f(join(rank, size, timeout)); }));
    }
    for (std::future<void>& rank : ranks) rank.get();
  }

  Store store_;
};

TEST_F(Tcp, ManyPiecesInManyChannelsAtOnce) {
  as_ranks(3, [](const std::shared_ptr<TcpMembership>& membership) {
    const auto first = std::make_shared<TcpTransport>(membership);
    const auto communicator = make_host_communicator(first, std::make_shared<Neighbours>(*first, false));
    Communicator& group = *communicator;
    const auto gradients = group.duplicate("gradients");
    const Stream worker = Stream::worker("gradients");
    // Two pieces and one element more.
    const Tensor large = Tensor::zeros({TcpTransport::kPieceBytes / 2 + 1}, DType::kFloat32);
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

// Each of them, asked alone, would take 2 s.
TEST_F(Tcp, SilentStrangersAtAllPortsButOneAreAskedSideBySide) {
  const int base = std::stoi(store_.port()) + 1;
  std::vector<Socket> silent;
  for (int i = 0; i + 1 < TcpRendezvous::kPorts; ++i) {
    silent.push_back(listen_at(static_cast<std::uint16_t>(base + i), true));
  }
  as_ranks(3, [](const std::shared_ptr<TcpMembership>& membership) {
    TcpTransport(membership).meet({.kind = OperationKind::kBarrier});
  });
}

TEST_F(Tcp, RunsOfOnePortPassEachOtherBy) {
  const auto run = [&](const std::string& job) {
    std::vector<std::future<void>> ranks;
    for (int rank = 0; rank < 2; ++rank) {
      ranks.push_back(std::async(std::launch::async, [=] {
        const auto membership =
            std::make_shared<TcpMembership>(environment(rank, 2), CommunicatorOptions{.timeout = kSoon, .job = job});
        TcpTransport(membership).meet({.kind = OperationKind::kBarrier});
      }));
    }
    return ranks;
  };
  std::vector<std::future<void>> first = run("first");
  for (std::future<void>& rank : run("second")) rank.get();
  for (std::future<void>& rank : first) rank.get();
}

TEST_F(Tcp, ARunHasTheNameOfItsSecretAndOfTorchrunsFolder) {
  const auto run = [&] { return TcpRendezvous::from_environment(environment(0, 2)).run; };
  const std::string open = run();
  EXPECT_EQ(run(), open);
  variables({{"LOCKSTEP_SECRET", "known to the ranks"}});
  EXPECT_NE(run(), open);
  EXPECT_THAT(run(), Not(HasSubstr("known")));
  unsetenv("LOCKSTEP_SECRET");
  variables({{"GROUP_WORLD_SIZE", "1"}, {"TORCHELASTIC_ERROR_FILE", "/tmp/a/attempt_0/0/error.json"}});
  const std::string first = run();
  variables({{"TORCHELASTIC_ERROR_FILE", "/tmp/a/attempt_0/1/error.json"}});
  EXPECT_EQ(run(), first);
  variables({{"TORCHELASTIC_ERROR_FILE", "/tmp/b/attempt_0/0/error.json"}});
  EXPECT_NE(run(), first);
  for (const char* name : {"GROUP_WORLD_SIZE", "TORCHELASTIC_ERROR_FILE"}) unsetenv(name);
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
    EXPECT_EQ(where.address, address);
    where.ports = {0};
    const Socket listener = where.listen();
    std::string reason;
    // Not every machine has IPv6.
    EXPECT_TRUE(connect_to(address, listener.port(), soon(), reason) || std::string(address) == "::1") << reason;
  }
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
