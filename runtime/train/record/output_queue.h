// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

namespace lockstep::train {

/// Bytes that wait to be written, in their order. They come in pieces, such as lines, and leave in whatever parts the
/// system takes.
class OutputQueue {
 public:
  explicit OutputQueue(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  bool empty() const { return pieces_.empty(); }
  /// Whether a piece of so many bytes still fits.
  bool has_room(std::size_t bytes) const { return bytes_ + bytes <= most_bytes_; }
  /// The number of pieces that have not left as a whole.
  std::uint64_t pieces() const { return pieces_.size(); }

  void push(std::string piece) {
    if (piece.empty()) return;
    const std::size_t bytes = piece.size();
    pieces_.push_back(std::move(piece));
    bytes_ += bytes;
  }
  /// The first bytes, `most` of them at most.
  std::string front(std::size_t most) const {
    std::string bytes;
    for (std::size_t i = 0; i < pieces_.size() && bytes.size() < most; ++i) {
      bytes.append(pieces_[i], i == 0 ? begun_ : 0, most - bytes.size());
    }
    return bytes;
  }
  /// The first `bytes` have been written.
  void pop(std::size_t bytes) {
    bytes_ -= bytes;
    begun_ += bytes;
    while (!pieces_.empty() && begun_ >= pieces_.front().size()) {
      begun_ -= pieces_.front().size();
      pieces_.pop_front();
    }
  }

 private:
  std::size_t most_bytes_;
  std::size_t bytes_ = 0;
  std::size_t begun_ = 0;  ///< bytes of the first piece that have left
  std::deque<std::string> pieces_;
};

}  // namespace lockstep::train
