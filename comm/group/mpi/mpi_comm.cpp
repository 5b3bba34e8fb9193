// SPDX-License-Identifier: Apache-2.0
#include "comm/group/mpi/mpi_comm.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "runtime/base/core_yield.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::comm {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kMpiYielding = milliseconds(20);
constexpr auto kMpiNap = std::chrono::microseconds(50);
constexpr auto kMpiInspection = milliseconds(100);

}  // namespace

/// Finds the ranks that others wait for. MPI does not say which rank keeps a collective from completing; so a rank that
/// has waited for long tells all others where it waits. Ranks that it has not heard from are missing.
class MpiComm::RollCall {
 public:
  /// The calling thread waits in one call and a device in another; their tags tell them apart.
  enum Tag { kHost = 1, kDevice = 2 };

  /// `mine` outlives the messages.
  RollCall(MpiComm& comm, Tag tag, const Wait& mine)
      : comm_(comm),
        tag_(tag),
        number_(mine.number),
        heard_(comm.group_.ranks.size(), false),
        waits_(comm.group_.ranks.size()) {
    heard_[static_cast<std::size_t>(comm.rank())] = true;
    waits_[static_cast<std::size_t>(comm.rank())] = mine.operation;
    for (int r = 0; r < comm.size(); ++r) {
      if (r == comm.rank()) continue;
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Isend(&mine, sizeof mine, MPI_BYTE, r, tag_, comm.comm_, &request);
      MPI_Request_free(&request);
    }
  }

  std::int64_t number() const { return number_; }

  /// Reads what has come, including what was sent in waits that have ended since.
  void listen() {
    int found = 0;
    MPI_Status status;
    while (MPI_Iprobe(MPI_ANY_SOURCE, tag_, comm_.comm_, &found, &status) == MPI_SUCCESS && found != 0) {
      Wait wait;
      MPI_Recv(&wait, sizeof wait, MPI_BYTE, status.MPI_SOURCE, tag_, comm_.comm_, MPI_STATUS_IGNORE);
      if (wait.number != number_) continue;
      heard_[static_cast<std::size_t>(status.MPI_SOURCE)] = true;
      waits_[static_cast<std::size_t>(status.MPI_SOURCE)] = wait.operation;
    }
  }

  std::vector<int> missing() const {
    std::vector<int> ranks;
    for (std::size_t r = 0; r < heard_.size(); ++r) {
      if (!heard_[r]) ranks.push_back(comm_.group_.ranks[r]);
    }
    return ranks;
  }

  /// The call that each rank waits in, where none is missing.
  const std::vector<Operation>& waits() const { return waits_; }

 private:
  MpiComm& comm_;
  Tag tag_;
  std::int64_t number_;
  std::vector<bool> heard_;
  std::vector<Operation> waits_;
};

MpiComm::MpiComm(MPI_Comm comm, Group group, Peers& peers, milliseconds timeout)
    : comm_(comm), group_(std::move(group)), peers_(peers), timeout_(timeout), operations_(group_.ranks.size()) {
  const std::lock_guard lock(mpi_mutex());
  check_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

MpiComm::~MpiComm() = default;

const std::vector<Operation>& MpiComm::meet(const Operation& mine) {
  const WaitClock::Wait wait(peers_.waits());
  const TraceRange range("wait for other ranks", RangeKind::kCommunication);
  complete(mine, [&](MPI_Request* request) {
    return MPI_Iallgather(&mine, sizeof mine, MPI_BYTE, operations_.data(), sizeof mine, MPI_BYTE, comm_, request);
  });
  peers_.require_agreement(operations_, group_.ranks, group_.name);
  return operations_;
}

void MpiComm::require_success(int code, const Operation& operation) {
  if (code == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, reason, &length);
  peers_.lose(PeerError(describe(operation, group_.name) + " failed in MPI: " + reason));
}

void MpiComm::complete(const Operation& operation, const std::function<int(MPI_Request*)>& call) {
  MPI_Request request = start(operation, call);
  finish(operation, request);
}

MPI_Request MpiComm::start(const Operation& operation, const std::function<int(MPI_Request*)>& call) {
  peers_.require_working(describe(operation, group_.name));
  MPI_Request request = MPI_REQUEST_NULL;
  const std::lock_guard lock(mpi_mutex());
  require_success(call(&request), operation);
  return request;
}

void MpiComm::finish(const Operation& operation, MPI_Request& request) {
  const auto began = Clock::now();
  const auto patience = std::min<Clock::duration>(std::chrono::seconds(1), timeout_ / 4);
  auto inspected = began;
  std::optional<RollCall> roll_call;
  for (int done = 0; done == 0;) {
    {
      const std::lock_guard lock(mpi_mutex());
      require_success(MPI_Test(&request, &done, MPI_STATUS_IGNORE), operation);
    }
    if (done != 0) break;
    const auto now = Clock::now();
    if (now - began < kMpiYielding && yield_core()) continue;
    std::this_thread::sleep_for(kMpiNap);
    if (now - inspected < std::min<Clock::duration>(kMpiInspection, patience / 4)) continue;
    inspected = now;
    peers_.require_alive(group_.ranks, describe(operation, group_.name));
    if (now - began < patience) continue;
    const std::lock_guard lock(mpi_mutex());
    if (!roll_call) {
      wait_.operation = operation;
      roll_call.emplace(*this, RollCall::kHost, wait_);
    }
    roll_call->listen();
    if (now - began >= timeout_) peers_.lose_late(roll_call->missing(), describe(operation, group_.name), timeout_);
  }
  ++wait_.number;
}

void MpiComm::inspect(const Operation& mine, std::int64_t number, milliseconds waited) {
  const std::string what = fmt::format("{}, number {}", describe(mine, group_.name), number);
  peers_.require_working(what);
  peers_.require_alive(group_.ranks, what);
  const std::lock_guard lock(mpi_mutex());
  if (!device_call_ || device_call_->number() != number) {
    device_wait_ = {number, mine};
    device_call_ = std::make_unique<RollCall>(*this, RollCall::kDevice, device_wait_);
  }
  device_call_->listen();
  if (waited < timeout_) return;
  const std::vector<int> missing = device_call_->missing();
  if (missing.empty()) peers_.require_agreement(device_call_->waits(), group_.ranks, group_.name);
  peers_.lose_late(missing, what, timeout_);
}

}  // namespace lockstep::comm
