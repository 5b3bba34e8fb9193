// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace lockstep {

/// Owns a file descriptor of the system and closes it at the end. Move-only; -1: none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  /// Leaves it to the caller to close.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  /// Closes what it owns and takes `number` over. Leaves errno as it is, so that a failed call may be reported after.
  void reset(int number = -1) noexcept;

 private:
  int number_ = -1;
};

}  // namespace lockstep
