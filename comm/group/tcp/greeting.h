// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <type_traits>

#include "comm/group/tcp/hmac.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

// How a rank and the hub, or two ranks, make each other's acquaintance: the hub says a number that nobody can foresee,
// the rank who it is, and the hub whether it may join. Each proves that it has the run's key, which never leaves it, by
// a keyed digest over what both have said; so nobody can use again, or change, what he has heard. All of it is plain
// bytes in the machine's order; a rank of another kind of machine does not get past it.

/// The first bytes of each message. Whoever does not know them is not ours.
inline constexpr std::uint64_t kGreetingMagic = 0x5445455247534c00;  // "\0LSGREET"
inline constexpr std::uint64_t kHelloMagic = 0x4f4c4c4548534c00;     // "\0LSHELLO"
inline constexpr std::uint64_t kWelcomeMagic = 0x4d434c4557534c00;   // "\0LSWELCM"
/// The version of these messages and of the frames behind them.
inline constexpr std::uint64_t kTcpVersion = 6;

/// Text of at most 255 bytes; longer text is cut.
struct ShortText {
  char text[256];
  static ShortText of(const std::string& text);
  std::string str() const;
};

using Nonce = std::array<std::uint8_t, 16>;
/// From the system's source of randomness.
Nonce fresh_nonce();

/// The key of a run. Its ranks know it; others know it only where there is no secret.
using RunKey = Digest256;

/// Hello::channel of a connection to the hub.
inline constexpr std::int32_t kHubChannel = -1;

/// The first message of the hub on a connection. Its magic and version have the same place in every version.
struct Greeting {
  std::uint64_t magic = kGreetingMagic;
  std::uint64_t version = kTcpVersion;
  Nonce nonce{};
};

/// The message of the rank that connects.
struct Hello {
  std::uint64_t magic = kHelloMagic;
  std::uint64_t version = kTcpVersion;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::int32_t process = 0;
  /// Where it has found the hub, of several ports; 0 where there is one only. Whoever listens at another of them cannot
  /// pass it on as its own.
  std::uint32_t port = 0;
  std::int32_t channel = kHubChannel;  ///< that a connection between two ranks is for
  std::int32_t lane = 0;               ///< which one of several
  Nonce nonce{};
  ShortText job{};       ///< what the run trains
  ShortText job_hash{};  ///< exactly; empty where the run has a name that tells it from others
  ShortText host{};      ///< for messages
  Digest256 proof{};
};

/// The hub's answer.
struct Welcome {
  /// The more an asker has in common with the run, the later.
  enum class Answer : std::uint64_t {
    kWelcome,
    kOtherRun,
    kOtherJob,
    kOtherJobInPlace,  ///< the hub waits for a rank of this number, and this one with another job calls on
    kRefused,
    kDifferentJob,  ///< it is of this run, which ends for it
  };
  std::uint64_t magic = kWelcomeMagic;
  Answer answer = Answer::kWelcome;
  Hello hub;           ///< without port, nonce and proof
  ShortText reason{};  ///< unless welcome
  Digest256 proof{};
};
static_assert(std::is_trivially_copyable_v<Greeting> && std::has_unique_object_representations_v<Greeting>);
static_assert(std::is_trivially_copyable_v<Hello> && std::has_unique_object_representations_v<Hello>);
static_assert(std::is_trivially_copyable_v<Welcome> && std::has_unique_object_representations_v<Welcome>);

/// The `proof` that a rank with the key gives in `hello` after this greeting; what `hello.proof` holds does not count.
Digest256 proof_of(const Hello& hello, const Greeting& greeting, const RunKey& key);
/// The proof of the hub that answers `hello`.
Digest256 proof_of(const Welcome& welcome, const Greeting& greeting, const Hello& hello, const RunKey& key);

/// For both sides where a rank of the run was started with another job; `reason` is the hub's.
PeerError other_job(const Hello& rank, const Hello& here, const std::string& reason);

/// "rank 1 (process 4711)", with the host where it is not that of `here`.
std::string rank_name(const Hello& of, const Hello& here);

}  // namespace lockstep::comm
