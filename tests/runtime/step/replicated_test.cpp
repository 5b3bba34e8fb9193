// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/replicated.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::step {
namespace {

/// Rank 1 of 2, to which rank 0 says one text.
class Told final : public comm::Communicator {
 public:
  explicit Told(std::string text) : text_(std::move(text)) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  std::string description() const override { return "told"; }
  Storage allocate(std::size_t bytes) override { return Storage::allocate(bytes, kCpu); }
  void all_reduce(const Tensor&, comm::ReduceOp, float, const Stream&) override {}
  void broadcast(const Tensor& buffer, int, const Stream&) override {
    if (buffer.dtype() == DType::kInt64) {
      buffer.mutable_as<std::int64_t>()[0] = static_cast<std::int64_t>(text_.size());
    } else {
      std::ranges::copy(text_, buffer.mutable_as<std::uint8_t>().begin());
    }
  }
  void all_gather(const Tensor&, const Tensor&, const Stream&) override {}
  void reduce_scatter(const Tensor&, const Tensor&, comm::ReduceOp, const Stream&) override {}
  void barrier(const Stream&) override {}
  std::shared_ptr<comm::Communicator> duplicate(const std::string&) override { return nullptr; }
  std::shared_ptr<comm::Communicator> split(int, int, const std::string&) override { return nullptr; }

 private:
  std::string text_;
};

Error error_of(const std::string& text) {
  Told told(text);
  try {
    on_rank_zero(told, [] {});
  } catch (const Error& error) {
    return error;
  }
  return Error(ExitCode::kDone, "nothing was thrown");
}

TEST(WhatRankZeroSays, IsItsError) {
  using namespace std::string_literals;
  const Error error = error_of("4\0make room\0the disk is full"s);
  EXPECT_EQ(error.code(), ExitCode::kStorage);
  EXPECT_STREQ(error.what(), "the disk is full");
  EXPECT_EQ(error.advice(), "make room");
  EXPECT_EQ(error_of("").code(), ExitCode::kDone);
}

TEST(WhatRankZeroSays, IsReadWithCare) {
  using namespace std::string_literals;
  for (const std::string& text : {"x"s, "\0\0"s, "4"s, "4\0advice"s, "x\0advice\0what"s, "0\0advice\0what"s,
                                  "256\0advice\0what"s, "99999999999999\0advice\0what"s, "4x\0advice\0what"s}) {
    const Error error = error_of(text);
    EXPECT_EQ(error.code(), ExitCode::kPeerLost) << text;
    EXPECT_THAT(error.what(), testing::HasSubstr("cannot be read")) << text;
  }
}

}  // namespace
}  // namespace lockstep::step
