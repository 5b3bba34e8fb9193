// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/data/dataset.h"

namespace lockstep::data {

/// The samples that one rank gets where blocks of a data set are dealt to the ranks in turn, in their order: rank r of
/// W has blocks r, r + W, r + 2 W, ... Only the last block of all may be smaller, and a rank may have none. Samples are
/// drawn as from the data set itself.
class DealtBlocks : public DerivedDataset {
 public:
  /// `block` samples each, at least 1.
  DealtBlocks(DatasetPtr base, std::int64_t block, std::int64_t rank, std::int64_t world_size);

  std::int64_t size() const override { return size_; }
  std::int64_t index_in_base(std::int64_t index) const override;

 private:
  std::int64_t block_;
  std::int64_t rank_;
  std::int64_t world_size_;
  std::int64_t size_;
};

}  // namespace lockstep::data
