// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "comm/group/communicator.h"
#include "runtime/data/dataset.h"
#include "runtime/data/loader.h"
#include "runtime/train/eval_metrics.h"
#include "runtime/train/network.h"
#include "runtime/train/pictures.h"
#include "runtime/train/skipped_samples.h"

namespace lockstep::train {

/// Evaluates a network on a data set, with all ranks.
class Evaluator {
 public:
  /// `task`: that of this data set, whose targets and weights may count otherwise than those of the training data.
  /// `loading`: of this rank, as evaluation_loader() gives it.
  Evaluator(Network& network, const Task& task, data::DatasetPtr dataset, const data::LoaderOptions& loading,
            comm::Communicator& communicator);

  /// Exact averages over the data set, whatever the ranks' shares; nothing where `stop` said on any rank that it must
  /// end. Throws StorageError, on every rank, where more samples were skipped than may be. A collective; leaves the
  /// model in training mode.
  /// `pictures` draws the first samples; may be null.
  std::optional<EvalResult> run(const std::function<bool()>& stop,
                                EvalMetrics::Confusion confusion = EvalMetrics::Confusion::kNotCounted,
                                Pictures* pictures = nullptr);

 private:
  /// The samples of the first batch whose loss is not finite; `mine`: its number on this rank. A collective.
  std::optional<SampleRange> bad_batch(std::uint64_t mine) const;

  Network& network_;
  Task task_;
  data::DatasetPtr dataset_;
  data::LoaderOptions loading_;
  data::BatchSlots slots_;  ///< for every pass: where memory is lacking, the run does not begin
  comm::Communicator& communicator_;
  SkippedNames skipped_names_;
};

}  // namespace lockstep::train
