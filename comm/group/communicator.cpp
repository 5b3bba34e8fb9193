// SPDX-License-Identifier: Apache-2.0
#include "comm/group/communicator.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/error.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::comm {

namespace {

Tensor length_of(const std::string& text) {
  return Tensor::from<std::int64_t>({static_cast<std::int64_t>(text.size())}, {1});
}

/// No rank says more; a length beyond comes from something else.
constexpr std::int64_t kLongestText = std::int64_t{256} << 20;

void require_length(std::int64_t length, int rank) {
  if (length >= 0 && length <= kLongestText) return;
  throw PeerError(fmt::format("rank {} announces a text of {} bytes", rank, length),
                  "Start every rank with the same program.");
}

/// The text's bytes, padded with zeros to `length`.
Tensor bytes_of(const std::string& text, std::int64_t length) {
  const Tensor bytes = Tensor::zeros({length}, DType::kUInt8);
  std::ranges::copy(text, bytes.mutable_as<std::uint8_t>().begin());
  return bytes;
}

}  // namespace

void Communicator::wait_for(const Event& event, const Stream& stream) {
  const TraceRange range("wait for a reduction", RangeKind::kCommunication);
  stream.wait(event);
}

std::vector<std::string> Communicator::all_gather_text(const std::string& text) {
  const Stream stream = Stream::calling_thread();
  const Tensor lengths = Tensor::empty({size()}, DType::kInt64);
  all_gather(length_of(text), lengths, stream);
  for (int r = 0; r < size(); ++r) require_length(lengths.as<std::int64_t>()[static_cast<std::size_t>(r)], r);
  const std::int64_t longest = std::ranges::max(lengths.as<std::int64_t>());

  const Tensor bytes = Tensor::empty({size(), longest}, DType::kUInt8);
  all_gather(bytes_of(text, longest), bytes, stream);
  std::vector<std::string> texts;
  for (int r = 0; r < size(); ++r) {
    const auto begin = bytes.as<std::uint8_t>().begin() + r * longest;
    texts.emplace_back(begin, begin + lengths.as<std::int64_t>()[static_cast<std::size_t>(r)]);
  }
  return texts;
}

std::string Communicator::broadcast_text(const std::string& text, int root) {
  const Stream stream = Stream::calling_thread();
  const Tensor length = length_of(text);
  broadcast(length, root, stream);
  const std::int64_t count = length.as<std::int64_t>()[0];
  require_length(count, root);
  const Tensor bytes = rank() == root ? bytes_of(text, count) : Tensor::empty({count}, DType::kUInt8);
  broadcast(bytes, root, stream);
  return {bytes.as<std::uint8_t>().begin(), bytes.as<std::uint8_t>().end()};
}

}  // namespace lockstep::comm
