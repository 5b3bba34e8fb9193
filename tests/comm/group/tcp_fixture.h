// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/group/tcp/rendezvous.h"
#include "comm/group/tcp/tcp_transport.h"

namespace lockstep::comm {

inline constexpr auto kTcpSoon = std::chrono::seconds(60);  // far beyond what is needed
inline constexpr auto kPatience =
    std::chrono::seconds(5);  // what a test waits for, and other processes answer within on a busy machine

inline Socket::Clock::time_point tcp_soon() { return Socket::Clock::now() + kTcpSoon; }

/// A port that is held, as torchrun's agent holds MASTER_PORT.
class Store {
 public:
  Store() : socket_(listen_at(0, true)) {}
  std::string port() const { return std::to_string(socket_.port()); }

 private:
  Socket socket_;
};

/// Ranks without MPI as threads of one process.
class Tcp : public testing::Test {
 protected:
  Tcp() {
    variables({{"MASTER_ADDR", "localhost"}, {"MASTER_PORT", store_.port()}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  }
  ~Tcp() override {
    for (const char* name :
         {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE", "LOCKSTEP_MASTER_PORT", "LOCKSTEP_SECRET",
          "LOCKSTEP_INTERFACE", "TORCHELASTIC_RUN_ID", "GROUP_WORLD_SIZE", "TORCHELASTIC_ERROR_FILE"}) {
      unsetenv(name);
    }
  }
  static void variables(const std::map<std::string, std::string>& values) {
    for (const auto& [name, value] : values) setenv(name.c_str(), value.c_str(), 1);
  }
  static LaunchEnvironment environment(int rank, int size) {
    return {LaunchEnvironment::Launcher::kTorchrun, rank, size, rank, size};
  }
  static std::shared_ptr<TcpMembership> join(int rank, int size, std::chrono::milliseconds timeout = kTcpSoon) {
    return std::make_shared<TcpMembership>(environment(rank, size), CommunicatorOptions{.timeout = timeout});
  }
  /// At the first free one of the ports of a run.
  Socket listen_first() const {
    Socket listener;
    for (int port = std::stoi(store_.port()) + 1; !listener; ++port) {
      listener = listen_at(static_cast<std::uint16_t>(port), true);
    }
    return listener;
  }
  /// Calls f(membership) as every rank.
  template <class F>
  static void as_ranks(int size, F f, std::chrono::milliseconds timeout = kTcpSoon) {
    std::vector<std::future<void>> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.push_back(std::async(std::launch::async, [=] { f(join(rank, size, timeout)); }));
    }
    for (std::future<void>& rank : ranks) rank.get();
  }

  Store store_;
};

}  // namespace lockstep::comm
