// SPDX-License-Identifier: Apache-2.0
#include "comm/group/tcp/direct_exchange.h"

#include <poll.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace lockstep::comm {

namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kLeastPiece = 16 * 1024;
/// Each piece costs a few calls of the system; at 64 KiB two ranks at 10 Gbit/s took half as long again.
constexpr std::int64_t kMostPiece = 256 * 1024;
/// The pieces that a share is divided into: behind the last one nothing else goes on.
constexpr std::int64_t kPiecesOfShare = 16;
/// How long a rank waits for the hub to say who was lost first.
constexpr auto kHubsWord = std::chrono::seconds(1);
/// How often a rank that waits for others says that it lives, unless a small timeout asks for more.
constexpr auto kBetweenSigns = std::chrono::seconds(1);

std::size_t slot(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

std::int64_t DirectFlow::piece_for(std::int64_t share_bytes) {
  constexpr std::int64_t kLine = 64;
  return std::clamp(share_bytes / kPiecesOfShare / kLine * kLine, kLeastPiece, kMostPiece);
}

DirectExchange::DirectExchange(DirectMesh mesh, TcpLink& link, milliseconds timeout)
    : mesh_(std::move(mesh)), link_(link), timeout_(timeout) {
  const std::size_t others = mesh_.ranks.size() - 1;
  std::size_t connections = 0;
  for (const std::vector<Socket>& sockets : mesh_.sockets) connections += sockets.size();
  for (int place = 0; slot(place) < mesh_.ranks.size(); ++place) {
    for (Socket& socket : mesh_.sockets[slot(place)]) {
      lanes_.push_back({DirectLane(std::move(socket), connections, others), place});
    }
  }
}

std::int64_t DirectExchange::pieces_of(int place) const {
  return (flow_->shares[slot(place)].bytes + flow_->piece_bytes - 1) / flow_->piece_bytes;
}

std::int64_t DirectExchange::bytes_of(int place, std::int64_t piece) const {
  return std::min(flow_->piece_bytes, flow_->shares[slot(place)].bytes - piece * flow_->piece_bytes);
}

std::byte* DirectExchange::staging(int place, std::int64_t piece) {
  const auto ranks = static_cast<std::int64_t>(mesh_.ranks.size());
  return staging_.data() + (piece % kWindow * ranks + place) * flow_->piece_bytes;
}

void DirectExchange::begin(Clock::time_point now) {
  ++number_;
  ready_ = 0;
  listens_ = true;
  contributors_ = 0;
  sources_.assign(mesh_.ranks.size(), nullptr);
  arrived_.assign(slot(kWindow), 0);
  for (int place = 0; slot(place) < mesh_.ranks.size(); ++place) {
    if (place != mesh_.place && flow_->contributes[slot(place)]) ++contributors_;
  }
  if (contributors_ > 0) {
    const std::int64_t most = std::min(kWindow, pieces_of(mesh_.place)) * flow_->piece_bytes;
    staging_.resize(std::max(staging_.size(), slot(most) * mesh_.ranks.size()));
  }
  std::vector<std::int64_t> first(mesh_.ranks.size());  // the lane's number of each rank
  for (Lane& lane : lanes_) {
    const std::int64_t index = first[slot(lane.place)]++;
    const auto lanes = static_cast<std::int64_t>(mesh_.sockets[slot(lane.place)].size());
    const auto row = [&](bool goes, int share) { return Lane::Row{index, goes ? pieces_of(share) : 0, lanes}; };
    lane.contributions_out = row(flow_->contributes[slot(mesh_.place)], lane.place);
    lane.contributions_in = row(flow_->contributes[slot(lane.place)], mesh_.place);
    lane.results_out = row(flow_->receives[slot(lane.place)], mesh_.place);
    lane.results_in = row(flow_->receives[slot(mesh_.place)], lane.place);
    lane.full = false;
    lane.hearing = lane.saying = now;
    lane.pieces.begin_exchange();
  }
}

bool DirectExchange::finished() const {
  return std::ranges::none_of(lanes_, [](const Lane& lane) { return lane.owed() || lane.owes(); });
}

void DirectExchange::run(const DirectFlow& flow, const std::string& what) {
  flow_ = &flow;
  what_ = what;
  const Clock::time_point since = Clock::now();
  begin(since);
  while (true) {
    for (Lane& lane : lanes_) receive(lane);
    combine_complete();
    for (Lane& lane : lanes_) send(lane);
    if (finished()) break;
    wait();
    require_progress();
  }
  const Clock::duration took = Clock::now() - since;
  for (Lane& lane : lanes_) lane.pieces.end_exchange(took);
}

void DirectExchange::receive(Lane& lane) {
  while (lane.owed() && !lane.full && !lane.pieces.awaits_bytes()) {
    const PieceHeader* const header = lane.pieces.incoming();
    if (header != nullptr && header->kind == PieceKind::kAlive && header->bytes == 0) {
      lane.pieces.receive(nullptr);
      continue;
    }
    std::byte* const payload = header == nullptr ? nullptr : place_for(lane, *header);
    if (payload != nullptr && lane.pieces.receive(payload)) {
      take(lane, *header);
      // Another lane's pieces may be what the next sum waits for.
      return;
    }
    if (lane.pieces.broken()) lose(lane.place);
  }
}

std::byte* DirectExchange::place_for(Lane& lane, const PieceHeader& header) {
  const bool contributed = header.kind == PieceKind::kContribution;
  const Lane::Row& row = contributed ? lane.contributions_in : lane.results_in;
  const int share = contributed ? mesh_.place : lane.place;
  const PieceHeader expected{number_, contributed ? PieceKind::kContribution : PieceKind::kResult,
                             static_cast<std::uint32_t>(row.next),
                             row.done() ? 0 : static_cast<std::uint64_t>(bytes_of(share, row.next))};
  if (row.done() || header != expected) {
    throw PeerError(what_ + ": " + mesh_.names[slot(lane.place)] + " has sent what this rank does not expect",
                    "Start every rank with the same program.");
  }
  if (!contributed) return flow_->out + flow_->shares[slot(share)].begin + row.next * flow_->piece_bytes;
  lane.full = row.next >= ready_ + kWindow;
  return lane.full ? nullptr : staging(lane.place, row.next);
}

void DirectExchange::take(Lane& lane, const PieceHeader& header) {
  if (header.kind == PieceKind::kResult) return lane.results_in.advance();
  ++arrived_[slot(lane.contributions_in.next % kWindow)];
  lane.contributions_in.advance();
}

void DirectExchange::combine_complete() {
  const std::int64_t pieces = pieces_of(mesh_.place);
  if (contributors_ == 0) ready_ = pieces;
  for (; ready_ < pieces && arrived_[slot(ready_ % kWindow)] == contributors_; ++ready_) {
    const std::int64_t offset = ready_ * flow_->piece_bytes;
    for (int place = 0; slot(place) < sources_.size(); ++place) {
      if (!flow_->contributes[slot(place)]) continue;
      sources_[slot(place)] =
          place == mesh_.place ? flow_->in + flow_->shares[slot(place)].begin + offset : staging(place, ready_);
    }
    flow_->combine(sources_, offset, bytes_of(mesh_.place, ready_));
    arrived_[slot(ready_ % kWindow)] = 0;
    for (Lane& lane : lanes_) {
      if (std::exchange(lane.full, false)) lane.hearing = Clock::now();
    }
  }
}

bool DirectExchange::post_next(Lane& lane) {
  // Contributions go first: others wait for them, while results are the end of their way.
  const bool has_result =
      lane.contributions_out.done() && lane.results_out.next < std::min(ready_, lane.results_out.end);
  if (!has_result && lane.contributions_out.done()) return false;
  Lane::Row& row = has_result ? lane.results_out : lane.contributions_out;
  const int share = has_result ? mesh_.place : lane.place;
  const std::byte* const buffer = has_result ? flow_->out : flow_->in;
  lane.pieces.post({number_, has_result ? PieceKind::kResult : PieceKind::kContribution,
                    static_cast<std::uint32_t>(row.next), static_cast<std::uint64_t>(bytes_of(share, row.next))},
                   buffer + flow_->shares[slot(share)].begin + row.next * flow_->piece_bytes);
  row.advance();
  return true;
}

void DirectExchange::send(Lane& lane) {
  while (!lane.pieces.awaits_room() && (!lane.pieces.idle() || post_next(lane))) {
    lane.pieces.send();
    if (lane.pieces.broken()) lose(lane.place);
  }
}

void DirectExchange::tell_alive() {
  const Clock::time_point now = Clock::now();
  for (Lane& lane : lanes_) {
    if (lane.results_out.done() || !lane.pieces.idle()) continue;
    if (now - lane.saying < std::min<Clock::duration>(kBetweenSigns, timeout_ / 8)) continue;
    lane.pieces.post({number_, PieceKind::kAlive, 0, 0}, nullptr);
    send(lane);
  }
}

void DirectExchange::wait() {
  std::vector<pollfd> watched;
  bool may_go_on = false;
  for (const Lane& lane : lanes_) {
    const bool reads = lane.owed() && !lane.full;
    const bool writes = lane.pieces.awaits_room() && !lane.pieces.idle();
    may_go_on = may_go_on || (reads && !lane.pieces.awaits_bytes());
    const int events = (reads ? POLLIN : 0) | (writes ? POLLOUT : 0);
    // poll() reports the end of any connection that it is asked about.
    watched.push_back({events == 0 ? -1 : lane.pieces.connection().descriptor(), static_cast<short>(events), 0});
  }
  watched.push_back({listens_ ? link_.lost_descriptor() : -1, POLLIN, 0});
  const auto longest = std::min<Clock::duration>(kBetweenSigns, timeout_ / 8);
  const auto time = may_go_on ? milliseconds(0) : std::max(ceil<milliseconds>(longest), milliseconds(1));
  poll(watched.data(), watched.size(), static_cast<int>(time.count()));
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if ((watched[i].revents & ~POLLOUT) != 0) lanes_[i].pieces.ready_to_receive();
    if ((watched[i].revents & ~POLLIN) != 0) lanes_[i].pieces.ready_to_send();
  }
  tell_alive();
}

void DirectExchange::require_progress() {
  const Clock::time_point now = Clock::now();
  for (Lane& lane : lanes_) {
    if (std::exchange(lane.heard, lane.pieces.heard()) != lane.pieces.heard()) lane.hearing = now;
    if (std::exchange(lane.said, lane.pieces.said()) != lane.pieces.said()) lane.saying = now;
  }
  require_not_late(now);
  if (!listens_) return;
  const std::optional<TcpLink::LostRank> lost = link_.first_lost(now);
  if (!lost) return;
  // This exchange may be complete without it.
  listens_ = false;
  for (const Lane& lane : lanes_) {
    if (mesh_.ranks[slot(lane.place)] != lost->rank || !lane.owed()) continue;
    throw lost->error(what_);
  }
}

void DirectExchange::require_not_late(Clock::time_point now) {
  std::vector<int> silent, deaf;
  for (const Lane& lane : lanes_) {
    // Bytes that have arrived, but are not read, are no silence.
    if (now - lane.hearing < timeout_ || (lane.owed() && !lane.full && !lane.pieces.awaits_bytes())) continue;
    if (lane.owed() && !lane.full) silent.push_back(lane.place);
    if (!lane.pieces.idle() && now - lane.saying >= timeout_) deaf.push_back(lane.place);
  }
  // A rank that takes nothing may wait for one that is silent.
  std::vector<int>& late_places = silent.empty() ? deaf : silent;
  late_places.erase(std::unique(late_places.begin(), late_places.end()), late_places.end());
  if (!late_places.empty()) throw late(what_, names(late_places), timeout_);
}

void DirectExchange::lose(int place) {
  // A connection ends, too, where another rank was lost before, which the hub knows.
  const std::optional<TcpLink::LostRank> lost = link_.first_lost(Clock::now() + kHubsWord);
  if (lost) throw lost->error(what_);
  throw absent(what_, mesh_.names[slot(place)], PeerState::kGone);
}

std::string DirectExchange::names(const std::vector<int>& places) const {
  std::string text;
  for (const int place : places) text += (text.empty() ? "" : ", ") + mesh_.names[slot(place)];
  return text;
}

}  // namespace lockstep::comm
