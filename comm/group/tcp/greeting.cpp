// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/greeting.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <system_error>
#include <vector>

#include "comm/group/rank_names.h"
#include "runtime/base/error.h"
#include "runtime/base/printable.h"

namespace lockstep::comm {

namespace {

template <class Message>
void append(std::vector<std::byte>& text, const Message& message) {
  const auto bytes = std::as_bytes(std::span(&message, 1));
  text.insert(text.end(), bytes.begin(), bytes.end());
}

}  // namespace

ShortText ShortText::of(const std::string& text) {
  ShortText result{};
  std::memcpy(result.text, text.data(), std::min(text.size(), sizeof result.text - 1));
  return result;
}

std::string ShortText::str() const { return printable({text, strnlen(text, sizeof text)}); }

Nonce fresh_nonce() {
  Nonce nonce{};
  if (getrandom(nonce.data(), nonce.size(), 0) == static_cast<ssize_t>(nonce.size())) return nonce;
  throw EnvironmentError("the system gives no random numbers: " + std::generic_category().message(errno),
                         "Ranks without MPI need getrandom: see the container's list of system calls.");
}

Digest256 proof_of(const Hello& hello, const Greeting& greeting, const RunKey& key) {
  Hello said = hello;
  said.proof = {};
  std::vector<std::byte> text;
  append(text, greeting);
  append(text, said);
  return hmac_sha256(std::as_bytes(std::span(key)), text);
}

Digest256 proof_of(const Welcome& welcome, const Greeting& greeting, const Hello& hello, const RunKey& key) {
  Welcome said = welcome;
  said.proof = {};
  std::vector<std::byte> text;
  append(text, greeting);
  append(text, hello);
  append(text, said);
  return hmac_sha256(std::as_bytes(std::span(key)), text);
}

PeerError other_job(const Hello& rank, const Hello& here, const std::string& reason) {
  return PeerError(rank_name(rank, here) + " was started with another job: " + reason,
                   "Start every rank with the same program, job and overrides. Give each of several runs a MASTER_PORT "
                   "of its own.");
}

std::string rank_name(const Hello& of, const Hello& here) {
  return rank_name(of.rank, of.process, of.host.str(), here.host.str());
}

}  // namespace lockstep::comm
