// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/group/communicator.h"

namespace lockstep::comm {

class LaunchBoard;
class Membership;

/// The processes of this job. Owns MPI's start and end; create one, keep it for the run, destroy it last.
class World {
 public:
  /// Under mpirun or srun --mpi=pmix the ranks find each other through MPI, or over TCP where they are on several hosts
  /// without RDMA: see transport_choice.h. Under any other srun, and where torchrun's environment variables are there,
  /// whoever set them, it is over TCP. Over TCP MPI is not even started: see tcp/rendezvous.h. Else a lone process.
  /// With options.device the communicator serves that GPU and the CPU, between GPUs NCCL carries the data, and the
  /// process uses no other one (gpu::use_device): call this before anything else uses a GPU. Throws UsageError where
  /// the environment promises other ranks and lacks what joining them needs, EnvironmentError where it promises more
  /// ranks than MPI finds.
  static World from_environment(const CommunicatorOptions& options = {});

  World(World&&) noexcept;
  World& operator=(World&&) noexcept;
  ~World();

  int rank() const { return communicator_->rank(); }
  int size() const { return communicator_->size(); }
  int local_rank() const { return local_rank_; }
  int local_size() const { return local_size_; }
  /// The transport that joins the ranks: "mpi" or "tcp"; empty for a lone process. It also carries the data between
  /// CPUs of several hosts.
  const std::string& transport() const { return transport_; }
  /// How long MPI_Init took; 0 where MPI was not started here.
  std::chrono::duration<double, std::milli> mpi_start_time() const { return mpi_start_time_; }
  const std::shared_ptr<Communicator>& communicator() const { return communicator_; }

  /// Ends every rank of the job with this exit code, without waiting for them. For a rank that cannot go on.
  [[noreturn]] void abort(int exit_code);

 private:
  World() = default;
  std::unique_ptr<LaunchBoard> board_;  ///< where MPI is started: it ends with MPI
  std::shared_ptr<Communicator> communicator_;
  int local_rank_ = 0;
  int local_size_ = 1;
  std::string transport_;
  std::chrono::duration<double, std::milli> mpi_start_time_{0};
  std::shared_ptr<Membership> membership_;  ///< of several ranks; ends with the last owner
};

}  // namespace lockstep::comm
