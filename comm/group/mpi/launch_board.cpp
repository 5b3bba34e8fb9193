// SPDX-License-Identifier: Apache-2.0
#include "comm/group/launch_board.h"

#include <fmt/format.h>
#include <pmix.h>

#include <atomic>
#include <future>

#include "comm/group/launcher_variables.h"
#include "comm/group/liveness/peer_errors.h"
#include "runtime/base/error.h"

namespace lockstep::comm {

namespace {

void check_pmix(pmix_status_t status, const char* call) {
  if (status == PMIX_SUCCESS) return;
  throw EnvironmentError(
      fmt::format("the launcher of these ranks does not answer: {}: {}", call, PMIx_Error_string(status)),
      "Start them with the mpirun of the Open MPI that this program is built with, or with srun.");
}

pmix_info_t switched_on(const char* attribute) {
  const bool yes = true;
  pmix_info_t info;
  PMIX_INFO_LOAD(&info, attribute, &yes, PMIX_BOOL);
  return info;
}

/// A wait of all ranks that is under way.
struct Fence {
  pmix_proc_t all{};
  pmix_info_t collect = switched_on(PMIX_COLLECT_DATA);
  std::promise<pmix_status_t> status;
};

/// Boards of this process: a later one finds nothing that an earlier one has left.
std::atomic<int> boards = 0;

class PmixBoard final : public LaunchBoard {
 public:
  explicit PmixBoard(std::chrono::milliseconds timeout) : timeout_(timeout) {
    check_pmix(PMIx_Init(&own_, nullptr, 0), "PMIx_Init");
  }
  PmixBoard(const PmixBoard&) = delete;
  PmixBoard& operator=(const PmixBoard&) = delete;
  ~PmixBoard() override {
    // While the launcher waits for other ranks, it does not let this one go.
    if (!lost_) PMIx_Finalize(nullptr, 0);
  }

  std::string word_of_rank_0(const std::string& subject, const std::string& own) override {
    const std::string key = fmt::format("lockstep.{}.{}", number_, subject);
    const std::string what = "start of the run, where rank 0 says its " + subject;
    if (own_.rank == 0) put(key, own);
    check_pmix(PMIx_Commit(), "PMIx_Commit");
    meet(what);
    return get(key, what);
  }

 private:
  pmix_proc_t process(pmix_rank_t rank) const {
    pmix_proc_t result = own_;
    result.rank = rank;
    return result;
  }

  static void put(const std::string& key, const std::string& word) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = const_cast<char*>(word.c_str());
    check_pmix(PMIx_Put(PMIX_GLOBAL, key.c_str(), &value), "PMIx_Put");
  }

  /// Waits for all ranks, which then have what each has put.
  void meet(const std::string& what) {
    auto fence = std::make_unique<Fence>();
    fence->all = process(PMIX_RANK_WILDCARD);
    std::future<pmix_status_t> status = fence->status.get_future();
    const auto tell = [](pmix_status_t reached, void* whom) {
      const std::unique_ptr<Fence> owner(static_cast<Fence*>(whom));
      owner->status.set_value(reached);
    };
    check_pmix(PMIx_Fence_nb(&fence->all, 1, &fence->collect, 1, tell, fence.get()), "PMIx_Fence");
    fence.release();  // PMIx has it until it answers, which may be never
    lost_ = status.wait_for(timeout_) != std::future_status::ready;
    if (lost_) throw late(what, "a rank that the launcher has started", timeout_);
    if (const pmix_status_t reached = status.get(); reached != PMIX_SUCCESS) {
      throw PeerError(fmt::format("{}: not all ranks have come ({})", what, PMIx_Error_string(reached)),
                      "Look for the first error of another rank.");
    }
  }

  /// From the launcher's process on this host, which has it or never gets it.
  std::string get(const std::string& key, const std::string& what) const {
    const pmix_proc_t first = process(0);
    const pmix_info_t at_once = switched_on(PMIX_IMMEDIATE);
    pmix_value_t* value = nullptr;
    const pmix_status_t status = PMIx_Get(&first, key.c_str(), &at_once, 1, &value);
    if (status != PMIX_SUCCESS || value->type != PMIX_STRING) {
      throw PeerError(what + ": it says nothing",
                      "Start every rank in the same way: LOCKSTEP_TRANSPORT is the same on each, or unset (mpirun -x "
                      "LOCKSTEP_TRANSPORT hands it on to other hosts).");
    }
    const std::string word = value->data.string;
    PMIX_VALUE_RELEASE(value);
    return word;
  }

  std::chrono::milliseconds timeout_;
  pmix_proc_t own_{};
  int number_ = ++boards;
  bool lost_ = false;  ///< a rank has not come
};

}  // namespace

std::unique_ptr<LaunchBoard> launch_board(std::chrono::milliseconds timeout) {
  if (!is_set("PMIX_NAMESPACE") || !is_set("PMIX_RANK")) return nullptr;
  return std::make_unique<PmixBoard>(timeout);
}

}  // namespace lockstep::comm
