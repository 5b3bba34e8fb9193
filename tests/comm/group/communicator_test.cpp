// SPDX-License-Identifier: Apache-2.0
#include "comm/group/communicator.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "runtime/base/error.h"

namespace lockstep::comm {
namespace {

using testing::HasSubstr;

/// Rank 1 of 2 as it hears rank 0, which says of every text that it is `length` bytes long.
class Misled final : public Communicator {
 public:
  explicit Misled(std::int64_t length) : length_(length) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  std::string description() const override { return "misled"; }
  Storage allocate(std::size_t bytes) override { return Storage::allocate(bytes, kCpu); }
  void all_reduce(const Tensor&, ReduceOp, float, const Stream&) override {}
  void broadcast(const Tensor& buffer, int, const Stream&) override { answer(buffer); }
  void all_gather(const Tensor&, const Tensor& out, const Stream&) override { answer(out); }
  void reduce_scatter(const Tensor&, const Tensor&, ReduceOp, const Stream&) override {}
  void barrier(const Stream&) override {}
  std::shared_ptr<Communicator> duplicate(const std::string&) override { return nullptr; }
  std::shared_ptr<Communicator> split(int, int, const std::string&) override { return nullptr; }

 private:
  void answer(const Tensor& buffer) const {
    if (buffer.dtype() == DType::kInt64) std::ranges::fill(buffer.mutable_as<std::int64_t>(), length_);
    if (buffer.dtype() == DType::kUInt8) std::ranges::fill(buffer.mutable_as<std::uint8_t>(), std::uint8_t{'x'});
  }

  std::int64_t length_;
};

TEST(Texts, OfAnotherRankHaveALengthThatCanBe) {
  EXPECT_EQ(Misled(3).broadcast_text("", 0), "xxx");
  EXPECT_THAT(Misled(0).all_gather_text(""), testing::ElementsAre("", ""));
  for (const std::int64_t length : {std::int64_t{-1}, std::int64_t{1} << 40}) {
    try {
      Misled(length).broadcast_text("", 0);
      FAIL();
    } catch (const PeerError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank 0 announces a text of " + std::to_string(length) + " bytes"));
    }
    EXPECT_THROW(Misled(length).all_gather_text("mine"), PeerError);
  }
}

}  // namespace
}  // namespace lockstep::comm
