// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/introduction.h"

#include <algorithm>

namespace lockstep::comm {

void Introduction::greet(const Socket& socket) {
  greeting_.nonce = fresh_nonce();
  // It fits an empty socket buffer, as the answer does.
  socket.send(&greeting_, sizeof greeting_);
}

Introduction::State Introduction::hear(const Socket& socket) {
  auto* const bytes = reinterpret_cast<char*>(&hello_);
  const std::ptrdiff_t received = socket.receive(bytes + heard_, sizeof hello_ - heard_);
  if (received < 0) return State::kOver;
  heard_ += static_cast<std::size_t>(received);
  if (heard_ < sizeof hello_) return State::kWaits;
  return hello_.magic == kHelloMagic && hello_.version == kTcpVersion ? State::kComplete : State::kOver;
}

bool Introduction::proves(const RunKey& key) const { return are_equal(hello_.proof, proof_of(hello_, greeting_, key)); }

void Introduction::answer(const Socket& socket, Welcome welcome, const Hello& own, const RunKey& key) const {
  welcome.hub = own;
  welcome.proof = proof_of(welcome, greeting_, hello_, key);
  socket.send(&welcome, sizeof welcome);
}

}  // namespace lockstep::comm
