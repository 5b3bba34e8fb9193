// SPDX-License-Identifier: Apache-2.0
#include "comm/group/seating.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>

#include "comm/group/liveness/peers.h"
#include "runtime/base/host_name.h"

namespace lockstep::comm {
namespace {

using testing::ElementsAre;
using testing::Pair;

Seat seat_on(const char* host, int process) {
  Seat seat;
  std::strcpy(seat.machine, host);
  std::strcpy(seat.host, host);
  seat.process = process;
  return seat;
}

TEST(Seating, NamesTheHostsOfRanksThatAreElsewhere) {
  const Seating seating({seat_on("a", 7), seat_on("b", 64), seat_on("a", 8)});
  EXPECT_THAT(seating.names_for(0), ElementsAre(Pair(0, "rank 0 (process 7)"), Pair(1, "rank 1 (process 64 on b)"),
                                                Pair(2, "rank 2 (process 8)")));
  EXPECT_THAT(seating.names_for(1), ElementsAre(Pair(0, "rank 0 (process 7 on a)"), Pair(1, "rank 1 (process 64)"),
                                                Pair(2, "rank 2 (process 8 on a)")));
}

TEST(Seating, OfThisProcessKnowsItsHost) { EXPECT_EQ(Seat::of_this_process().host, host_name()); }

TEST(Peers, CallRanksByTheirNumbersUntilTheyKnowTheirNames) {
  Peers peers(0);
  const std::vector<int> others{1, 2};
  EXPECT_EQ(peers.names(others), "rank 1, rank 2");
  peers.name({{1, "rank 1 (process 64 on b)"}});
  EXPECT_EQ(peers.names(others), "rank 1 (process 64 on b), rank 2");
}

}  // namespace
}  // namespace lockstep::comm
