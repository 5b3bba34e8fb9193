// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <span>
#include <string>

#include "comm/group/tcp/hub.h"

namespace lockstep::comm {

inline constexpr auto kSoon = std::chrono::seconds(60);  // far beyond what is needed

inline Socket::Clock::time_point soon() { return Socket::Clock::now() + kSoon; }

inline RunKey key_of(const std::string& name) { return sha256(std::as_bytes(std::span(name))); }

inline const RunKey kKey = key_of("this run");

inline Hello hello_of(int rank, int size) {
  Hello hello;
  hello.rank = rank;
  hello.size = size;
  return hello;
}

/// Receives the hub's greeting.
inline Greeting greeting_of(const Socket& socket) {
  Greeting greeting;
  EXPECT_TRUE(socket.receive_all(&greeting, sizeof greeting, soon()));
  EXPECT_EQ(greeting.magic, kGreetingMagic);
  EXPECT_EQ(greeting.version, kTcpVersion);
  return greeting;
}

/// The hub's answer to a rank that says `hello` and has `key`.
inline Welcome answer_to(const Socket& socket, Hello hello, const RunKey& key = kKey) {
  const Greeting greeting = greeting_of(socket);
  hello.proof = proof_of(hello, greeting, key);
  Welcome welcome;
  EXPECT_TRUE(socket.send_all(&hello, sizeof hello, soon()));
  EXPECT_TRUE(socket.receive_all(&welcome, sizeof welcome, soon()));
  EXPECT_EQ(welcome.proof, proof_of(welcome, greeting, hello, kKey)) << "the hub has the key";
  return welcome;
}

/// Whether the hub ends the connection, whatever it says before.
inline bool is_closed(const Socket& socket) {
  std::array<char, 64> bytes{};
  const auto end = soon();
  while (socket.receive_all(bytes.data(), 1, end)) {
  }
  return Socket::Clock::now() < end;
}

}  // namespace lockstep::comm
