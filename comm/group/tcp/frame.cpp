// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/frame.h"

#include <algorithm>
#include <utility>

#include "runtime/base/printable.h"

namespace lockstep::comm {

namespace {

/// More than any rank sends at once; a length beyond is not ours.
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

}  // namespace

Payload payload_of(const void* data, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(data);
  return std::make_shared<const std::vector<std::byte>>(begin, begin + bytes);
}

Payload payload_of(const std::string& text) { return payload_of(text.data(), text.size()); }

std::string text_of(const Payload& payload) {
  return {reinterpret_cast<const char*>(payload->data()), payload->size()};
}

bool is_sane(const FrameHeader& header) {
  const Operation& operation = header.operation;
  return header.kind <= FrameKind::kAbort && header.channel >= 0 && header.bytes <= kMostBytes &&
         operation.kind <= OperationKind::kConnect && operation.reduce >= ReduceOp::kSum &&
         operation.reduce <= ReduceOp::kAverage && operation.dtype <= DType::kBool && operation.count >= 0;
}

int abort_code(const FrameHeader& header) {
  const bool is_failure = header.number >= 1 && header.number <= 255;
  return is_failure ? static_cast<int>(header.number) : static_cast<int>(ExitCode::kPeerLost);
}

Payload encode(const PeerError& error) { return payload_of(std::string(error.what()) + '\0' + error.advice()); }

PeerError decode_error(const Payload& payload) {
  const std::string text = text_of(payload);
  const std::size_t end = std::min(text.find('\0'), text.size());
  return PeerError(printable(text.substr(0, end)), end == text.size() ? "" : printable(text.substr(end + 1)));
}

bool FrameReader::fill(const Socket& socket, void* data, std::size_t bytes) {
  const std::ptrdiff_t received = socket.receive(data, bytes);
  closed_ = received < 0;
  have_ += static_cast<std::size_t>(std::max<std::ptrdiff_t>(received, 0));
  return received > 0;
}

std::optional<Frame> FrameReader::next(const Socket& socket) {
  while (!closed_) {
    if (have_ < sizeof header_) {
      if (!fill(socket, reinterpret_cast<char*>(&header_) + have_, sizeof header_ - have_)) return std::nullopt;
      if (have_ < sizeof header_) continue;
      closed_ = !is_sane(header_);
      if (closed_) return std::nullopt;
      payload_ = std::make_shared<std::vector<std::byte>>(header_.bytes);
    }
    const std::size_t body = have_ - sizeof header_;
    if (body == header_.bytes) {
      have_ = 0;
      return Frame{header_, std::move(payload_)};
    }
    if (!fill(socket, payload_->data() + body, header_.bytes - body)) return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace lockstep::comm
