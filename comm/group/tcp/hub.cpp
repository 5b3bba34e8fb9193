// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/hub.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "runtime/tensor/error.h"

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

/// How long a connection may take to say who it is.
constexpr auto kGreeting = std::chrono::seconds(10);
/// How many connections may be about to say who they are: the oldest one makes room for the next.
constexpr std::ptrdiff_t kMostGreeting = 64;
/// How long the last words may take, at the end and before an abort.
constexpr auto kLastWords = std::chrono::seconds(1);
constexpr auto kAbortWords = milliseconds(500);
/// What the rest of a process may have open.
constexpr rlim_t kOtherDescriptors = 256;

/// A file descriptor for every rank, whatever the shell allows by default.
void allow_connections(int ranks) {
  rlimit limit{};
  const rlim_t needed = static_cast<rlim_t>(ranks) + kOtherDescriptors;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_cur == needed && setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  throw EnvironmentError(
      fmt::format("rank 0 needs {} open files to talk to {} ranks, and may have {}", needed, ranks, limit.rlim_cur),
      "Raise the limit (ulimit -n), or start the ranks with mpirun.");
}

}  // namespace

std::string rank_name(const Hello& of, const Hello& here) {
  const std::string where = of.host.str() == here.host.str() ? "" : " on " + of.host.str();
  return fmt::format("rank {} (process {}{})", of.rank, of.process, where);
}

TcpHub::TcpHub(Socket listener, Socket own, const Hello& expected, milliseconds timeout)
    : listener_(std::move(listener)),
      expected_(expected),
      meetings_(
          expected.size, timeout,
          [this](int rank, const FrameHeader& header, Payload payload) { send(rank, header, std::move(payload)); }),
      wake_(connected_pair()) {
  allow_connections(expected.size);
  Connection& first = connections_.emplace_back();
  first.socket = std::move(own);
  first.hello = expected;
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
      if (stopping_ && end == Clock::time_point::max()) end = Clock::now() + kLastWords;
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
  if (listener_) watched.push_back({listener_.descriptor(), POLLIN, 0});
  auto next = std::min(meetings_.next_deadline(), Clock::now() + kGreeting);
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
    if (!socket) return;
    Connection& connection = connections_.emplace_back();
    connection.socket = std::move(socket);
    connection.accepted = Clock::now();
  }
}

void TcpHub::read(Connection& connection) {
  if (connection.rank < 0) greet(connection);
  if (connection.rank < 0) return;
  while (const std::optional<Frame> frame = connection.reader.next(connection.socket)) take(connection, *frame);
  connection.closed = connection.closed || connection.reader.closed();
}

void TcpHub::greet(Connection& connection) {
  auto* const bytes = reinterpret_cast<char*>(&connection.hello);
  const std::ptrdiff_t received =
      connection.socket.receive(bytes + connection.hello_bytes, sizeof connection.hello - connection.hello_bytes);
  connection.closed = received < 0 || Clock::now() > connection.accepted + kGreeting;
  connection.hello_bytes += static_cast<std::size_t>(std::max<std::ptrdiff_t>(received, 0));
  if (connection.closed || connection.hello_bytes < sizeof connection.hello) return;
  connection.closed = connection.hello.magic != kHelloMagic;
  if (connection.closed) return;

  const Hello& hello = connection.hello;
  const Welcome welcome = judge(hello);
  // It fits an empty socket buffer.
  connection.socket.send(&welcome, sizeof welcome);
  connection.closed = welcome.answer != Welcome::Answer::kWelcome;
  if (!connection.closed) {
    connection.rank = hello.rank;
    meetings_.name(hello.rank, rank_name(hello, expected_));
  } else if (welcome.answer == Welcome::Answer::kRefused) {
    spdlog::warn("refused {}: {}", rank_name(hello, expected_), welcome.reason.str());
  }
}

Welcome TcpHub::judge(const Hello& hello) const {
  Welcome welcome;
  welcome.hub = expected_;
  welcome.hub.run = {};  // the name lets in whoever has it
  const auto refuse = [&](Welcome::Answer answer, const std::string& reason) {
    welcome.answer = answer;
    welcome.reason = ShortText::of(reason);
  };
  if (hello.version != kTcpVersion) {
    refuse(Welcome::Answer::kRefused, "it runs another version of lockstep than rank 0");
  } else if (hello.run.str() != expected_.run.str()) {
    refuse(Welcome::Answer::kOtherRun, "it belongs to another run than rank 0");
  } else if (hello.job.str() != expected_.job.str()) {
    refuse(Welcome::Answer::kOtherRun,
           fmt::format("it trains job \"{}\", rank 0 \"{}\"", hello.job.str(), expected_.job.str()));
  } else if (hello.size != expected_.size) {
    refuse(Welcome::Answer::kRefused, fmt::format("it was told of {} ranks, rank 0 of {}", hello.size, expected_.size));
  } else if (hello.rank < 0 || hello.rank >= hello.size) {
    refuse(Welcome::Answer::kRefused, "there is no such rank");
  } else {
    for (const Connection& other : connections_) {
      if (other.rank != hello.rank || other.closed) continue;
      // It asks at all addresses that rank 0's machine has.
      const bool same = other.hello.process == hello.process && other.hello.host.str() == hello.host.str();
      refuse(same ? Welcome::Answer::kOtherRun : Welcome::Answer::kRefused,
             rank_name(other.hello, hello) + " is already there");
    }
  }
  return welcome;
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
      return abort_all(connection.rank, frame.header.number);
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

void TcpHub::abort_all(int origin, std::int64_t exit_code) {
  if (abort_) return;
  // A run that a rank gives up is not done, whatever number came.
  if (exit_code < 1 || exit_code > 255) exit_code = static_cast<std::int64_t>(ExitCode::kPeerLost);
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
