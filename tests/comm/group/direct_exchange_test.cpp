// SPDX-License-Identifier: Apache-2.0
// Exchanges over direct connections: what they compute, and what becomes of a rank whose peer, which a test plays, ends
// or falls silent in the midst of a piece.
#include "comm/group/tcp/direct_exchange.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "comm/group/reduction.h"
#include "runtime/base/error.h"
#include "tests/comm/group/hub_caller.h"

namespace lockstep::comm {
namespace {

constexpr int kLanes = 2;

using namespace std::chrono_literals;
using testing::HasSubstr;

/// The ends of the connections between `ranks` ranks: one mesh a rank.
std::vector<DirectMesh> meshes_of(int ranks) {
  std::vector<DirectMesh> meshes(static_cast<std::size_t>(ranks));
  for (int place = 0; place < ranks; ++place) {
    DirectMesh& mesh = meshes[static_cast<std::size_t>(place)];
    mesh.place = place;
    mesh.ranks.resize(static_cast<std::size_t>(ranks));
    std::iota(mesh.ranks.begin(), mesh.ranks.end(), 0);
    for (int r = 0; r < ranks; ++r) mesh.names.push_back("rank " + std::to_string(r) + " (process 7 on elsewhere)");
    mesh.sockets.resize(static_cast<std::size_t>(ranks));
  }
  for (std::size_t a = 0; a < meshes.size(); ++a) {
    for (std::size_t b = a + 1; b < meshes.size(); ++b) {
      for (int lane = 0; lane < kLanes; ++lane) {
        std::pair<Socket, Socket> ends = connected_pair();
        meshes[a].sockets[b].push_back(std::move(ends.first));
        meshes[b].sockets[a].push_back(std::move(ends.second));
      }
    }
  }
  return meshes;
}

/// A link to a hub that a test plays.
struct Link {
  explicit Link(std::pair<Socket, Socket> ends = connected_pair())
      : hub(std::move(ends.first)), link(std::move(ends.second), 1, "rank 0 (process 1)", kSoon) {}
  void tell(int rank, PeerState state, const std::string& name) const {
    const FrameHeader header{.kind = FrameKind::kNews,
                             .number = static_cast<std::int64_t>(state),
                             .operation = {.root = rank},
                             .bytes = name.size()};
    EXPECT_TRUE(hub.send_all(&header, sizeof header, soon()));
    EXPECT_TRUE(hub.send_all(name.data(), name.size(), soon()));
  }
  Socket hub;
  TcpLink link;
};

float value_of(int rank, std::size_t i) {
  return std::sin(static_cast<float>(i % 10007) * 7.1f + static_cast<float>(rank) * 131.0f) *
         std::exp2(static_cast<float>(i % 13) - 6.0f);
}

DirectFlow flow_of(int ranks, std::int64_t count, std::int64_t piece_bytes, float* data) {
  const std::vector<bool> all(static_cast<std::size_t>(ranks), true);
  auto* const bytes = reinterpret_cast<std::byte*>(data);
  DirectFlow flow{.in = bytes, .out = bytes, .contributes = all, .receives = all, .piece_bytes = piece_bytes};
  for (int r = 0; r < ranks; ++r) {
    const Range part = part_of(count, r, ranks, DType::kFloat32);
    flow.shares.push_back({part.begin * 4, part.count() * 4});
  }
  return flow;
}

/// All-reduces as one rank, with naps of its own choice before pieces.
void all_reduce(DirectExchange& exchange, int place, int ranks, std::vector<float>& data, std::int64_t piece_bytes,
                int nap_every = 0) {
  DirectFlow flow = flow_of(ranks, static_cast<std::int64_t>(data.size()), piece_bytes, data.data());
  const Reduction reduction = reduction_of(Operation{.kind = OperationKind::kAllReduce, .dtype = DType::kFloat32},
                                           std::vector<float>(static_cast<std::size_t>(ranks), 1.0f));
  std::byte* const own = flow.out + flow.shares[static_cast<std::size_t>(place)].begin;
  int pieces = 0;
  flow.combine = [&](std::span<const std::byte* const> sources, std::int64_t offset, std::int64_t bytes) {
    if (nap_every > 0 && pieces++ % nap_every == 0) std::this_thread::sleep_for(100us);
    const std::vector<const void*> from(sources.begin(), sources.end());
    void* const to = own + offset;
    reduce(reduction, from, {&to, 1}, bytes / 4);
  };
  exchange.run(flow, "all_reduce");
}

/// The result of rank 0, which is that of all, of two exchanges one after the other.
std::vector<float> summed(int ranks, std::size_t count, std::int64_t piece_bytes, int napping_rank) {
  std::vector<DirectMesh> meshes = meshes_of(ranks);
  std::vector<std::vector<float>> data(meshes.size(), std::vector<float>(count));
  std::vector<std::future<void>> done;
  for (int place = 0; place < ranks; ++place) {
    done.push_back(std::async(std::launch::async, [&, place] {
      const auto own = static_cast<std::size_t>(place);
      Link link;
      DirectExchange exchange(std::move(meshes[own]), link.link, kSoon);
      for (std::size_t i = 0; i < count; ++i) data[own][i] = value_of(place, i);
      all_reduce(exchange, place, ranks, data[own], piece_bytes, place == napping_rank ? 3 : 0);
      all_reduce(exchange, place, ranks, data[own], piece_bytes);
    }));
  }
  for (std::future<void>& rank : done) rank.get();
  for (const std::vector<float>& other : data) EXPECT_EQ(other, data.front());
  return data.front();
}

TEST(DirectExchange, SumsHaveTheBitsOfOneReductionWhateverThePiecesAndTheTiming) {
  for (const int ranks : {2, 3, 4}) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{33}, std::size_t{5001}}) {
      std::vector<float> expected(count);
      std::vector<std::vector<float>> inputs;
      std::vector<const void*> sources;
      for (int r = 0; r < ranks; ++r) {
        std::vector<float>& input = inputs.emplace_back(count);
        for (std::size_t i = 0; i < count; ++i) input[i] = value_of(r, i);
      }
      for (const std::vector<float>& input : inputs) sources.push_back(input.data());
      const Reduction reduction =
          reduction_of(Operation{.dtype = DType::kFloat32}, std::vector<float>(static_cast<std::size_t>(ranks), 1.0f));
      void* const to = expected.data();
      reduce(reduction, sources, {&to, 1}, static_cast<std::int64_t>(count));
      // The second exchange sums as many of the first one's.
      const std::vector<float> once = expected;
      sources.assign(sources.size(), once.data());
      reduce(reduction, sources, {&to, 1}, static_cast<std::int64_t>(count));
      for (const std::int64_t piece : {std::int64_t{64}, std::int64_t{1024}, std::int64_t{1} << 20}) {
        EXPECT_EQ(summed(ranks, count, piece, ranks - 1), expected) << ranks << " ranks, pieces of " << piece;
      }
    }
  }
}

/// Rank 0 of two, beside which a test is rank 1, and the hub.
class BesideOne : public testing::Test {
 protected:
  static constexpr std::int64_t kPieces = DirectExchange::kWindow + 4;  // of each share
  static constexpr std::int64_t kPiece = 1024;

  /// Rank 0's outcome with this timeout.
  std::future<std::string> start(std::chrono::milliseconds timeout = kSoon) {
    std::vector<DirectMesh> meshes = meshes_of(2);
    peer_ = std::move(meshes[1].sockets[0]);
    return std::async(std::launch::async, [this, timeout, mesh = std::make_shared<DirectMesh>(std::move(meshes[0]))] {
      std::vector<float> data(2 * kPieces * kPiece / 4, 1.0f);
      DirectExchange exchange(std::move(*mesh), link_.link, timeout);
      try {
        all_reduce(exchange, 0, 2, data, kPiece);
      } catch (const PeerError& error) {
        return std::string(error.what());
      }
      return std::string("finished");
    });
  }
  /// Sends a piece, or the first `bytes` of its payload.
  void send(PieceKind kind, std::uint32_t piece, std::size_t bytes = kPiece) const {
    const PieceHeader header{1, kind, piece, kind == PieceKind::kAlive ? 0 : std::uint64_t{kPiece}};
    const std::vector<std::byte> payload(kPiece);
    const Socket& lane = peer_[piece % kLanes];
    EXPECT_TRUE(lane.send_all(&header, sizeof header, soon()));
    EXPECT_TRUE(lane.send_all(payload.data(), kind == PieceKind::kAlive ? 0 : bytes, soon()));
  }
  void send_all(PieceKind kind) const {
    for (std::uint32_t piece = 0; piece < kPieces; ++piece) send(kind, piece);
  }

  std::vector<Socket> peer_;
  Link link_;
};

TEST_F(BesideOne, AllPiecesComplete) {
  std::future<std::string> rank0 = start();
  send_all(PieceKind::kContribution);
  send_all(PieceKind::kResult);
  // The buffers between the two hold all that rank 0 sends.
  EXPECT_EQ(rank0.get(), "finished");
}

TEST_F(BesideOne, OneThatDiesInAContributionIsNamed) {
  std::future<std::string> rank0 = start();
  for (std::uint32_t piece = 0; piece < 5; ++piece) send(PieceKind::kContribution, piece);
  send(PieceKind::kContribution, 5, kPiece / 2);
  peer_.clear();
  EXPECT_EQ(rank0.get(), "all_reduce: rank 1 (process 7 on elsewhere) is gone");
}

TEST_F(BesideOne, OneThatDiesInAResultIsNamed) {
  std::future<std::string> rank0 = start();
  send_all(PieceKind::kContribution);
  send(PieceKind::kResult, 0);
  send(PieceKind::kResult, 1, 1);
  peer_.clear();
  EXPECT_EQ(rank0.get(), "all_reduce: rank 1 (process 7 on elsewhere) is gone");
}

TEST_F(BesideOne, OneThatDiesInAHeaderIsNamed) {
  std::future<std::string> rank0 = start();
  peer_[0].send("abc", 3);
  peer_.clear();
  EXPECT_EQ(rank0.get(), "all_reduce: rank 1 (process 7 on elsewhere) is gone");
}

// Its connections end, too, where it has lost another rank.
TEST_F(BesideOne, TheHubKnowsWhoWasLostFirst) {
  std::future<std::string> rank0 = start();
  send(PieceKind::kContribution, 0, 10);
  peer_.clear();
  link_.tell(5, PeerState::kGone, "rank 5 (process 9)");
  EXPECT_EQ(rank0.get(), "all_reduce: rank 5 (process 9) is gone");
}

// Its process, and so the connection, may live on.
TEST_F(BesideOne, OneThatFailsAsTheHubSaysIsNamed) {
  std::future<std::string> rank0 = start();
  send(PieceKind::kContribution, 0);
  link_.tell(1, PeerState::kFailed, "rank 1 (process 7)");
  EXPECT_EQ(rank0.get(), "all_reduce: rank 1 (process 7) has failed");
}

TEST_F(BesideOne, TheLossOfARankThatHasNoPartIsNoError) {
  std::future<std::string> rank0 = start();
  link_.tell(5, PeerState::kGone, "rank 5");
  send_all(PieceKind::kContribution);
  send_all(PieceKind::kResult);
  EXPECT_EQ(rank0.get(), "finished");
}

TEST_F(BesideOne, OneThatFallsSilentInAPieceIsLate) {
  for (const PieceKind phase : {PieceKind::kContribution, PieceKind::kResult}) {
    std::future<std::string> rank0 = start(500ms);
    if (phase == PieceKind::kResult) send_all(PieceKind::kContribution);
    send(phase, 0, kPiece / 2);
    EXPECT_EQ(rank0.get(), "all_reduce: rank 1 (process 7 on elsewhere) did not arrive within 0.5 s");
  }
}

// It has a rank of its own to wait for.
TEST_F(BesideOne, OneThatSaysThatItLivesIsNotLate) {
  std::future<std::string> rank0 = start(2s);
  send_all(PieceKind::kContribution);
  for (int i = 0; i < 25; ++i) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) send(PieceKind::kAlive, lane);
    std::this_thread::sleep_for(100ms);
  }
  send_all(PieceKind::kResult);
  EXPECT_EQ(rank0.get(), "finished");
}

TEST_F(BesideOne, NonsenseIsNamed) {
  const std::vector<PieceHeader> nonsense{{2, PieceKind::kContribution, 0, kPiece},
                                          {1, PieceKind::kContribution, kLanes, kPiece},
                                          {1, PieceKind::kContribution, 0, kPiece - 1},
                                          {1, PieceKind::kContribution, 0, std::uint64_t{1} << 40},
                                          {1, PieceKind::kAlive, 0, 5},
                                          {1, static_cast<PieceKind>(9), 0, kPiece}};
  for (const PieceHeader& header : nonsense) {
    std::future<std::string> rank0 = start();
    EXPECT_TRUE(peer_[0].send_all(&header, sizeof header, soon()));
    EXPECT_THAT(rank0.get(), HasSubstr("rank 1 (process 7 on elsewhere) has sent what this rank does not expect"));
  }
}

// Of three ranks one is stopped: who waits for it says that it lives, so that only the culprit is named.
TEST(DirectExchange, WhoWaitsForAStoppedRankIsNotBlamed) {
  std::vector<DirectMesh> meshes = meshes_of(3);
  const DirectMesh stopped = std::move(meshes[2]);
  // The stopped one has sent its contribution to rank 0, one piece, and none to rank 1.
  constexpr std::size_t kCount = 3 * 256;
  const PieceHeader header{1, PieceKind::kContribution, 0, 1024};
  const std::vector<std::byte> payload(1024);
  EXPECT_TRUE(stopped.sockets[0][0].send_all(&header, sizeof header, soon()));
  EXPECT_TRUE(stopped.sockets[0][0].send_all(payload.data(), payload.size(), soon()));
  Link link;
  std::vector<std::unique_ptr<DirectExchange>> exchanges;  // their connections outlive the first error
  std::vector<std::future<std::string>> ranks;
  for (int place = 0; place < 2; ++place) {
    exchanges.push_back(
        std::make_unique<DirectExchange>(std::move(meshes[static_cast<std::size_t>(place)]), link.link, 2s));
    ranks.push_back(std::async(std::launch::async, [place, &exchange = *exchanges.back()] {
      std::vector<float> data(kCount, 1.0f);
      try {
        all_reduce(exchange, place, 3, data, 1024);
      } catch (const PeerError& error) {
        return std::string(error.what());
      }
      return std::string("finished");
    }));
  }
  for (std::future<std::string>& rank : ranks) {
    EXPECT_EQ(rank.get(), "all_reduce: rank 2 (process 7 on elsewhere) did not arrive within 2.0 s");
  }
}

// A rank that another one has found to be late, and failed by it, is not named in its stead.
TEST_F(BesideOne, WhatAnotherRankFailedByIsTold) {
  std::future<std::string> rank0 = start();
  const Payload why = encode(PeerError("all_reduce: rank 2 did not arrive within 2.0 s"));
  FrameHeader news{.kind = FrameKind::kNews, .number = static_cast<std::int64_t>(PeerState::kFailed)};
  news.operation.root = 1;
  news.overdue = 1;
  news.bytes = why->size();
  EXPECT_TRUE(link_.hub.send_all(&news, sizeof news, soon()));
  EXPECT_TRUE(link_.hub.send_all(why->data(), why->size(), soon()));
  EXPECT_EQ(rank0.get(), "all_reduce: rank 2 did not arrive within 2.0 s");
}

}  // namespace
}  // namespace lockstep::comm
