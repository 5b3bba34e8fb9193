// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/frame.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>

#include "comm/group/tcp/socket.h"
#include "runtime/base/error.h"

namespace lockstep::comm {
namespace {

TEST(FrameReader, TakesNoHarmFromAnyBytes) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const auto [ours, theirs] = connected_pair();
    FrameHeader header{.kind = FrameKind::kError, .bytes = 10};
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
    bytes += "0123456789";
    for (int flips = i % 5; flips > 0; --flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(bytes.size() - random() % 4);
    EXPECT_EQ(theirs.send(bytes.data(), bytes.size()), static_cast<std::ptrdiff_t>(bytes.size()));
    theirs.end_sending();
    FrameReader reader;
    while (const std::optional<Frame> frame = reader.next(ours)) {
      ASSERT_TRUE(is_sane(frame->header));
      ASSERT_EQ(frame->payload->size(), frame->header.bytes);
      decode_error(frame->payload);
    }
    EXPECT_TRUE(reader.closed());
  }
}

TEST(FrameReader, PutsPiecesTogether) {
  const auto [ours, theirs] = connected_pair();
  const PeerError error("what", "advice");
  const Payload payload = encode(error);
  FrameHeader header{.kind = FrameKind::kError, .channel = 3, .bytes = payload->size()};
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  bytes += text_of(payload);
  FrameReader reader;
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    theirs.send(&bytes[i], 1);
    ASSERT_FALSE(reader.next(ours));
  }
  theirs.send(&bytes.back(), 1);
  const std::optional<Frame> frame = reader.next(ours);
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->header.channel, 3);
  EXPECT_STREQ(decode_error(frame->payload).what(), "what");
  EXPECT_EQ(decode_error(frame->payload).advice(), "advice");
}

}  // namespace
}  // namespace lockstep::comm
