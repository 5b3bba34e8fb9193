// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/hub.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

/// How many connections may be about to say who they are: the oldest one makes room for the next.
constexpr std::ptrdiff_t kMostGreeting = 64;
/// How long the hub does not look for connections where it has no file descriptor or memory for one.
constexpr auto kAcceptNap = milliseconds(100);
/// How many reasons for refusals are logged: a rank chooses what some of them say.
constexpr std::size_t kMostWarnings = 8;
/// How long the last words may take, at the end and before an abort.
constexpr auto kHubLastWords = std::chrono::seconds(1);
constexpr auto kAbortWords = milliseconds(500);

}  // namespace

TcpHub::TcpHub(Socket listener, Socket own, const Hello& expected, const RunKey& key, milliseconds timeout,
               milliseconds greeting, RankClaims claims)
    : listener_(std::move(listener)),
      port_(listener_.port()),
      expected_(expected),
      key_(key),
      greeting_(greeting),
      meetings_(
          expected.size, timeout,
          [this](int rank, const FrameHeader& header, Payload payload) { send(rank, header, std::move(payload)); }),
      claims_(std::move(claims)),
      wake_(connected_pair()) {
  allow_connections(expected.size, fmt::format("the connections to {} ranks", expected.size));
  Connection& first = connections_.emplace_back();
  first.socket = std::move(own);
  first.rank = 0;
  first.spoke = true;
  meetings_.name(0, rank_name(expected, expected));
  thread_ = std::thread([this] { serve(); });
  pthread_setname_np(thread_.native_handle(), "tcp hub");
}

TcpHub::~TcpHub() {
  stopping_ = true;
  const char byte = 0;
  wake_.first.send(&byte, 1);
  thread_.join();
}

void TcpHub::serve() {
  auto end = Clock::time_point::max();
  try {
    while (!(stopping_ && (all_sent() || Clock::now() > end))) {
      if (stopping_ && end == Clock::time_point::max()) end = Clock::now() + kHubLastWords;
      wait();
      // A rank that tries again has ended its earlier connection first, and that is seen first.
      for (Connection& connection : connections_) read(connection);
      drop_closed();
      accept_all();
      meetings_.expire(Clock::now());
      for (Connection& connection : connections_) write(connection);
      drop_closed();
      finish_abort();
    }
  } catch (const std::exception& error) {
    spdlog::error("the ranks can no longer reach each other: {}", error.what());
  }
  connections_.clear();  // ends the waits of the ranks at the other ends
}

void TcpHub::wait() {
  std::vector<pollfd> watched{{wake_.second.descriptor(), POLLIN, 0}};
  // Where the next World of these processes connects at once, it must not come here.
  if (meetings_.ending()) listener_ = Socket();
  auto next = std::min(meetings_.next_deadline(), Clock::now() + greeting_);
  if (listener_ && Clock::now() < next_accept_) {
    next = std::min(next, next_accept_);
  } else if (listener_) {
    watched.push_back({listener_.descriptor(), POLLIN, 0});
  }
  if (stopping_ || abort_) next = Clock::now() + milliseconds(10);
  for (const Connection& connection : connections_) {
    const short events = connection.outgoing.empty() ? POLLIN : POLLIN | POLLOUT;
    watched.push_back({connection.socket.descriptor(), events, 0});
  }
  const auto left = std::chrono::ceil<milliseconds>(next - Clock::now()).count();
  poll(watched.data(), watched.size(), static_cast<int>(std::max<decltype(left)>(left, 0)));
}

void TcpHub::accept_all() {
  for (std::ptrdiff_t taken = 0; listener_ && taken < kMostGreeting; ++taken) {
    const auto greeting = [](const Connection& connection) { return connection.rank < 0; };
    if (std::ranges::count_if(connections_, greeting) >= kMostGreeting) {
      connections_.erase(std::ranges::find_if(connections_, greeting));
    }
    Socket socket = listener_.accept();
    if (!socket) {
      // The listener stays readable, so that poll() would return at once.
      const bool lacks = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      if (lacks) next_accept_ = Clock::now() + kAcceptNap;
      return;
    }
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.accepted = Clock::now();
    connection.introduction.greet(connection.socket);
  }
}

void TcpHub::read(Connection& connection) {
  if (connection.rank < 0) greet(connection);
  if (connection.rank < 0) return;
  while (const std::optional<Frame> frame = connection.reader.next(connection.socket)) take(connection, *frame);
  connection.closed = connection.closed || connection.reader.closed();
}

void TcpHub::greet(Connection& connection) {
  const Introduction::State state = connection.introduction.hear(connection.socket);
  connection.closed = state == Introduction::State::kOver || Clock::now() > connection.accepted + greeting_;
  if (connection.closed || state == Introduction::State::kWaits) return;
  const Hello& hello = connection.introduction.hello();
  Welcome welcome = judge(connection);
  if (welcome.answer == Welcome::Answer::kOtherJob) {
    welcome.answer = judge_other_job(hello, welcome.reason.str());
  }
  connection.introduction.answer(connection.socket, welcome, expected_, key_);
  connection.closed = welcome.answer != Welcome::Answer::kWelcome;
  if (!connection.closed) {
    connection.rank = hello.rank;
    meetings_.name(hello.rank, rank_name(hello, expected_));
  } else if (welcome.answer == Welcome::Answer::kRefused) {
    warn_of(hello, welcome.reason.str());
  }
  if (welcome.answer == Welcome::Answer::kDifferentJob && claims_.all_told(missing())) {
    const PeerError error = other_job(hello, expected_, welcome.reason.str());
    for (const int rank : missing()) meetings_.lose(rank, PeerState::kFailed, encode(error));
  }
}

Welcome TcpHub::judge(const Connection& connection) const {
  using Answer = Welcome::Answer;
  const Hello& hello = connection.introduction.hello();
  const auto refused = [](Answer answer, const std::string& reason) {
    return Welcome{.answer = answer, .reason = ShortText::of(reason)};
  };
  // First: of strangers nothing that they say counts.
  if (!connection.introduction.proves(key_)) {
    return refused(Answer::kOtherRun, "it belongs to another run than rank 0");
  }
  if (hello.channel != kHubChannel) return refused(Answer::kOtherRun, "it looks for another rank than rank 0");
  if (hello.port != 0 && hello.port != port_) {
    return refused(Answer::kOtherRun, fmt::format("it has asked at port {}, where rank 0 is not", hello.port));
  }
  if (hello.job.str() != expected_.job.str()) {
    return refused(Answer::kOtherJob,
                   fmt::format("it trains job \"{}\", rank 0 \"{}\"", hello.job.str(), expected_.job.str()));
  }
  if (hello.job_hash.str() != expected_.job_hash.str()) {
    return refused(Answer::kOtherJob, fmt::format("it trains job \"{}\" with other settings than rank 0: {}, rank 0 {}",
                                                  hello.job.str(), hello.job_hash.str(), expected_.job_hash.str()));
  }
  if (hello.size != expected_.size) {
    return refused(Answer::kRefused, fmt::format("it was told of {} ranks, rank 0 of {}", hello.size, expected_.size));
  }
  if (hello.rank < 0 || hello.rank >= hello.size) return refused(Answer::kRefused, "there is no such rank");
  // The others have been told that it is lost.
  if (meetings_.has_lost(hello.rank)) return refused(Answer::kOtherRun, "it is lost to the run of rank 0");
  for (const Connection& other : connections_) {
    if (other.rank != hello.rank || other.closed) continue;
    // It asks at all addresses that rank 0's machine has.
    const Hello& first = other.rank == 0 ? expected_ : other.introduction.hello();
    const bool same = first.process == hello.process && first.host.str() == hello.host.str();
    return refused(same ? Answer::kOtherRun : Answer::kRefused, rank_name(first, hello) + " is already there");
  }
  return {};
}

Welcome::Answer TcpHub::judge_other_job(const Hello& caller, const std::string& reason) {
  const std::vector<int> awaited = missing();
  // A run of another size is another run, whatever it trains.
  if (caller.size != expected_.size) return Welcome::Answer::kOtherJob;
  if (std::ranges::find(awaited, caller.rank) == awaited.end()) return Welcome::Answer::kOtherJob;
  const RankClaims::Stage stage = claims_.call(caller.rank, awaited, Clock::now());
  if (stage == RankClaims::Stage::kPassesBy) return Welcome::Answer::kOtherJob;
  warn_of(caller, reason);
  return stage == RankClaims::Stage::kDecided ? Welcome::Answer::kDifferentJob : Welcome::Answer::kOtherJobInPlace;
}

std::vector<int> TcpHub::missing() const {
  std::vector<bool> here(static_cast<std::size_t>(expected_.size));
  for (const Connection& connection : connections_) {
    if (connection.rank >= 0) here[static_cast<std::size_t>(connection.rank)] = true;
  }
  std::vector<int> ranks;
  for (int rank = 0; rank < expected_.size; ++rank) {
    if (!here[static_cast<std::size_t>(rank)] && !meetings_.has_lost(rank)) ranks.push_back(rank);
  }
  return ranks;
}

void TcpHub::warn_of(const Hello& refused, const std::string& reason) {
  if (warned_of_.size() == kMostWarnings || !warned_of_.insert(reason).second) return;
  spdlog::warn("refused {}: {}", rank_name(refused, expected_), reason);
}

void TcpHub::take(Connection& connection, const Frame& frame) {
  connection.spoke = true;
  switch (frame.header.kind) {
    case FrameKind::kContribution:
    case FrameKind::kMeeting:
    case FrameKind::kDeviceWait:
    case FrameKind::kFailed:
      return meetings_.take(connection.rank, frame);
    case FrameKind::kAbort:
      return abort_all(connection.rank, abort_code(frame.header));
    case FrameKind::kResult:
    case FrameKind::kError:
    case FrameKind::kVerdict:
    case FrameKind::kNews:
    case FrameKind::kAborted:
      connection.closed = true;  // not for a hub
  }
}

void TcpHub::write(Connection& connection) {
  while (!connection.closed && !connection.outgoing.empty()) {
    const Outgoing& first = connection.outgoing.front();
    const bool in_header = connection.sent < sizeof first.header;
    const std::size_t body = in_header ? 0 : connection.sent - sizeof first.header;
    const std::ptrdiff_t sent =
        in_header ? connection.socket.send(reinterpret_cast<const char*>(&first.header) + connection.sent,
                                           sizeof first.header - connection.sent)
                  : connection.socket.send(first.payload->data() + body, first.payload->size() - body);
    if (sent < 0) connection.closed = true;
    if (sent <= 0) return;
    connection.sent += static_cast<std::size_t>(sent);
    if (connection.sent < sizeof first.header + first.payload->size()) continue;
    connection.outgoing.pop_front();
    connection.sent = 0;
  }
}

void TcpHub::drop_closed() {
  std::vector<int> gone;
  for (const Connection& connection : connections_) {
    // One that was welcome and left without a word has only looked in too early or too late, and tries again.
    if (connection.closed && connection.rank >= 0 && connection.spoke) gone.push_back(connection.rank);
  }
  connections_.remove_if([](const Connection& connection) { return connection.closed; });
  for (const int rank : gone) meetings_.lose(rank, PeerState::kGone);
}

void TcpHub::send(int rank, const FrameHeader& header, Payload payload) {
  Connection* const connection = connection_of(rank);
  if (connection == nullptr) return;
  connection->outgoing.push_back({header, std::move(payload)});
  connection->outgoing.back().header.bytes = connection->outgoing.back().payload->size();
}

TcpHub::Connection* TcpHub::connection_of(int rank) {
  const auto found = std::ranges::find(connections_, rank, &Connection::rank);
  return found == connections_.end() ? nullptr : &*found;
}

bool TcpHub::all_sent() const {
  return std::ranges::all_of(connections_, [](const Connection& connection) { return connection.outgoing.empty(); });
}

void TcpHub::abort_all(int origin, int exit_code) {
  if (abort_) return;
  abort_ = {origin, exit_code, Clock::now() + kAbortWords};
  for (const Connection& connection : connections_) {
    // Rank 0 goes last: the hub ends with it.
    if (connection.rank <= 0 || connection.rank == origin) continue;
    send(connection.rank, {.kind = FrameKind::kAbort, .number = exit_code}, payload_of(""));
  }
}

void TcpHub::finish_abort() {
  if (!abort_ || !(all_sent() || Clock::now() > abort_->end)) return;
  const Abort abort = *std::exchange(abort_, std::nullopt);
  send(abort.origin, {.kind = FrameKind::kAborted}, payload_of(""));
  if (Connection* const origin = connection_of(abort.origin)) write(*origin);
  if (abort.origin != 0) send(0, {.kind = FrameKind::kAbort, .number = abort.exit_code}, payload_of(""));
}

}  // namespace lockstep::comm
