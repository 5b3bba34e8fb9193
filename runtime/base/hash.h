// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct XXH3_state_s;

namespace lockstep {

/// XXH3-128 of bytes that come piece by piece. It tells damage and differences, not malice.
class Hash128 {
 public:
  Hash128();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  /// The hash of the bytes so far: 32 hexadecimal digits, the highest first.
  std::string hex() const;
  /// The high half of the hash: the first 16 of those digits as a number.
  std::uint64_t high64() const;

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
};

/// XXH3-128 of a text, as Hash128::hex() gives it.
std::string hash128_of(std::string_view text);

}  // namespace lockstep
