// SPDX-License-Identifier: Apache-2.0
#include "comm/group/mpi/mpi_transport.h"

#include <utility>

#include "comm/group/join.h"
#include "comm/group/mpi/mpi_exchange.h"

namespace lockstep::comm {

MpiTransport::MpiTransport(std::shared_ptr<MpiMembership> membership, Group group, MPI_Comm comm)
    : Transport(std::move(group), membership->peers(), membership->timeout()),
      membership_(std::move(membership)),
      comm_(comm, this->group(), peers(), timeout()) {}

void MpiTransport::all_reduce(const Operation& mine, std::span<const Operation> met, std::byte* data,
                              std::int64_t count) {
  const std::span<const Operation> operations = met.empty() ? meet(mine) : met;
  exchange::all_reduce(comm_, mine, reduction_of(mine, operations), data, count);
}

void MpiTransport::reduce_scatter(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t count) {
  exchange::reduce_scatter(comm_, mine, reduction_of(mine, meet(mine)), in, out, count);
}

void MpiTransport::all_gather(const Operation& mine, const std::byte* in, std::byte* out, std::int64_t bytes) {
  meet(mine);
  exchange::all_gather(comm_, mine, in, out, bytes);
}

void MpiTransport::broadcast(const Operation& mine, std::byte* data, std::int64_t bytes) {
  meet(mine);
  exchange::broadcast(comm_, mine, data, bytes);
}

std::shared_ptr<Transport> MpiTransport::split(int color, int key, const std::string& name) {
  const Operation operation{.kind = OperationKind::kNewChannel};
  meet(operation);
  const MPI_Comm comm = membership_->split(comm_.comm(), color, key);
  if (comm == MPI_COMM_NULL) return nullptr;
  Group part{.name = name};
  {
    const std::lock_guard lock(mpi_mutex());
    int size = 0;
    check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    check_mpi(MPI_Comm_rank(comm, &part.rank), "MPI_Comm_rank");
    part.ranks.resize(static_cast<std::size_t>(size));
    const int world_rank = group().ranks[static_cast<std::size_t>(rank())];
    check_mpi(MPI_Allgather(&world_rank, 1, MPI_INT, part.ranks.data(), 1, MPI_INT, comm), "MPI_Allgather");
  }
  return std::make_shared<MpiTransport>(membership_, std::move(part), comm);
}

Joined join_mpi(const LaunchEnvironment& environment, const CommunicatorOptions& options) {
  const auto membership = std::make_shared<MpiMembership>(environment, options);
  return {membership, std::make_shared<MpiTransport>(membership, membership->world(), membership->world_comm()),
          membership->mpi_start_time()};
}

}  // namespace lockstep::comm
