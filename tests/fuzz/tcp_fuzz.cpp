// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/group/tcp/frame.h"
#include "comm/group/tcp/greeting.h"
#include "comm/group/tcp/meetings.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

/// A frame of each kind of operation, and a greeting.
std::vector<std::string> tcp_seeds() {
  using comm::OperationKind;
  std::string frames;
  for (const OperationKind kind : {OperationKind::kAllReduce, OperationKind::kReduceScatter, OperationKind::kBroadcast,
                                   OperationKind::kAllGather, OperationKind::kNewChannel, OperationKind::kLeave}) {
    const comm::FrameHeader header{.operation = {.kind = kind, .dtype = DType::kFloat32, .count = 2}, .bytes = 8};
    frames += std::string(reinterpret_cast<const char*>(&header), sizeof header) + "12345678";
  }
  comm::Hello hello;
  hello.job = comm::ShortText::of("digits");
  return {frames, std::string(reinterpret_cast<const char*>(&hello), sizeof hello)};
}

/// What somebody says to the hub as his greeting: it can be printed, and proves nothing without the key.
void fuzz_greeting(std::string_view bytes) {
  comm::Hello hello;
  std::memcpy(&hello, bytes.data(), std::min(bytes.size(), sizeof hello));
  const comm::RunKey key = comm::sha256({});
  const comm::Digest256 proof = comm::proof_of(hello, comm::Greeting(), key);
  if (comm::are_equal(hello.proof, proof)) std::abort();
  hello.proof = proof;
  if (!comm::are_equal(comm::proof_of(hello, comm::Greeting(), key), proof)) std::abort();
  const std::string shown = comm::rank_name(hello, comm::Hello()) + hello.job.str() + hello.job_hash.str();
  if (shown.find('\x1b') != std::string::npos) std::abort();
}

/// What rank 1 sends the hub, where rank 0 goes along with all of it.
void fuzz_tcp(std::string_view bytes) {
  fuzz_greeting(bytes);
  const auto [hub, rank] = comm::connected_pair();
  rank.send(bytes.data(), bytes.size());
  rank.end_sending();
  comm::TcpMeetings meetings(2, std::chrono::seconds(1), [](int, const comm::FrameHeader&, const comm::Payload&) {});
  comm::FrameReader reader;
  while (const std::optional<comm::Frame> frame = reader.next(hub)) {
    if (frame->header.kind > comm::FrameKind::kFailed) break;
    meetings.take(0, {{.kind = frame->header.kind, .operation = frame->header.operation}, frame->payload});
    meetings.take(1, *frame);
    comm::decode_error(frame->payload);
  }
}

}  // namespace

Target tcp_target() { return {.parse = fuzz_tcp, .seeds = tcp_seeds(), .rounds = 10'000}; }

}  // namespace lockstep::fuzz
