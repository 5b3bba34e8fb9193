// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/tokens_options.h"

namespace lockstep::data {

/// One file's sequence of tokens. read() may be called from several threads at once.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  virtual std::int64_t size() const = 0;
  /// Fills `out` with the tokens from position `first` on. Throws StorageError where the file cannot be read.
  virtual void read(std::int64_t first, std::span<std::int64_t> out) const = 0;

  /// The bytes of the tokens as they are held.
  virtual std::uint64_t bytes() const = 0;
  /// Fills `out` with these, from byte `offset` of them on. Throws as read().
  virtual void read_bytes(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

/// The sequences of `options.files` and the number of tokens that there are.
struct TokenSources {
  std::vector<std::unique_ptr<TokenSource>> files;
  std::int64_t vocabulary = 0;
};

/// Text is encoded here; other formats stay on disk. Throws StorageError that names the file and what is wrong with it.
TokenSources open_tokens(const TokensOptions& options);

}  // namespace lockstep::data
