// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/link.h"

#include <poll.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

/// The hub says who is late; how much longer a rank waits for its word.
constexpr auto kGrace = std::chrono::seconds(1);
/// How long a rank that ends, or ends the job, tries to say so.
constexpr auto kRankLastWords = std::chrono::seconds(1);

}  // namespace

TcpLink::TcpLink(Socket socket, int rank, std::string hub, milliseconds timeout)
    : socket_(std::move(socket)),
      rank_(rank),
      hub_(std::move(hub)),
      timeout_(timeout),
      lost_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!lost_) {
    throw EnvironmentError("cannot watch over the other ranks: " + std::generic_category().message(errno),
                           "Raise the limit on open files: ulimit -n.");
  }
  thread_ = std::thread([this] { serve(); });
  pthread_setname_np(thread_.native_handle(), "tcp link");
}

TcpLink::~TcpLink() {
  socket_.shut_down();
  thread_.join();
}

Payload TcpLink::exchange(std::int32_t channel, const Operation& operation, const void* data, std::size_t bytes,
                          const std::string& what) {
  return arrive({.kind = FrameKind::kContribution, .channel = channel, .operation = operation, .bytes = bytes}, data,
                what);
}

Payload TcpLink::meet(std::int32_t channel, const Operation& operation, const std::string& what) {
  return arrive({.kind = FrameKind::kMeeting, .channel = channel, .operation = operation}, nullptr, what);
}

Payload TcpLink::arrive(FrameHeader header, const void* data, const std::string& what) {
  if (failed_) throw out_of_order(what, rank_);
  const auto end = Clock::now() + timeout_ + kGrace;
  send(header, data, header.bytes, end);
  const std::optional<Frame> answer = await(results_, header.channel, what, end);
  if (!answer) lose(late(what, hub_, timeout_));
  if (answer->header.kind == FrameKind::kError) lose(decode_error(answer->payload));
  return answer->payload;
}

void TcpLink::inspect(std::int32_t channel, const Operation& operation, std::int64_t number, const std::string& what,
                      milliseconds waited) {
  if (failed_) throw out_of_order(what, rank_);
  const bool overdue = waited >= timeout_;
  send({.kind = FrameKind::kDeviceWait,
        .channel = channel,
        .number = number,
        .operation = operation,
        .overdue = overdue ? 1u : 0u},
       nullptr, 0, Clock::now() + kGrace);
  const auto end = overdue ? Clock::now() + kGrace : Clock::time_point::min();
  const std::optional<Frame> verdict = await(verdicts_, {channel, number}, what, end);
  if (verdict) lose(decode_error(verdict->payload));
  if (overdue) lose(late(what, hub_, timeout_));
}

void TcpLink::fail() { fail(payload_of("")); }

void TcpLink::fail(const PeerError& why) { fail(encode(why)); }

void TcpLink::fail(const Payload& why) {
  if (failed_.exchange(true)) return;
  send({.kind = FrameKind::kFailed, .bytes = why->size()}, why->data(), why->size(), Clock::now() + kRankLastWords);
}

void TcpLink::abort(int exit_code) {
  const auto end = Clock::now() + kRankLastWords;
  send({.kind = FrameKind::kAbort, .number = exit_code}, nullptr, 0, end);
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, end, [&] { return aborted_ || hub_gone_; });
}

std::optional<TcpLink::LostRank> TcpLink::first_lost(Clock::time_point end) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, end, [&] { return news_.has_value() || hub_gone_; });
  return news_ || hub_gone_ ? std::optional(lost_rank()) : std::nullopt;
}

TcpLink::LostRank TcpLink::lost_rank() const {
  if (!news_) return {0, hub_, PeerState::kGone, std::nullopt};
  const FrameHeader& header = news_->header;
  LostRank lost{header.operation.root, text_of(news_->payload), static_cast<PeerState>(header.number), std::nullopt};
  if (header.overdue != 0) lost.why = decode_error(news_->payload);
  return lost;
}

void TcpLink::tell_lost() const {
  const std::uint64_t one = 1;
  static_cast<void>(write(lost_.get(), &one, sizeof one));  // it is readable already where this fails
}

void TcpLink::lose(const PeerError& error) {
  fail();
  throw error;
}

void TcpLink::send(const FrameHeader& header, const void* data, std::size_t bytes, Clock::time_point end) {
  const std::lock_guard lock(sending_);
  if (socket_.send_all(&header, sizeof header, end) && socket_.send_all(data, bytes, end)) return;
  // Nothing may follow half a frame. The hub's news, or its silence, tells the caller why the send failed.
  socket_.end_sending();
}

template <class Key>
std::optional<Frame> TcpLink::await(std::map<Key, Frame>& answers, const Key& key, const std::string& what,
                                    Clock::time_point end) {
  std::unique_lock lock(mutex_);
  const auto come = [&] { return answers.contains(key) || hub_gone_; };
  if (!come()) changed_.wait_until(lock, end, come);
  auto answer = answers.extract(key);
  if (!answer.empty()) return std::move(answer.mapped());
  if (!hub_gone_) return std::nullopt;
  // The hub ends when rank 0 learns of a lost rank.
  const LostRank lost = lost_rank();
  lock.unlock();
  lose(lost.error(what));
}

void TcpLink::serve() {
  FrameReader reader;
  try {
    while (!reader.closed()) {
      pollfd watched{socket_.descriptor(), POLLIN, 0};
      poll(&watched, 1, -1);
      while (std::optional<Frame> frame = reader.next(socket_)) {
        if (frame->header.kind == FrameKind::kAbort) std::_Exit(abort_code(frame->header));
        const std::lock_guard lock(mutex_);
        if (frame->header.kind == FrameKind::kVerdict) {
          verdicts_.insert_or_assign({frame->header.channel, frame->header.number}, std::move(*frame));
        } else if (frame->header.kind == FrameKind::kNews) {
          news_ = std::move(frame);
          tell_lost();
        } else if (frame->header.kind == FrameKind::kAborted) {
          aborted_ = true;
        } else {
          results_.insert_or_assign(frame->header.channel, std::move(*frame));
        }
        changed_.notify_all();
      }
    }
  } catch (const std::exception& error) {
    spdlog::error("rank {} can no longer hear the others: {}", rank_, error.what());
  }
  const std::lock_guard lock(mutex_);
  hub_gone_ = true;
  tell_lost();
  changed_.notify_all();
}

}  // namespace lockstep::comm
