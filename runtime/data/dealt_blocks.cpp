// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/dealt_blocks.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {

DealtBlocks::DealtBlocks(DatasetPtr base, std::int64_t block, std::int64_t rank, std::int64_t world_size)
    : DerivedDataset(std::move(base)), block_(block), rank_(rank), world_size_(world_size) {
  const std::int64_t round = block_ * world_size_;
  const std::int64_t rest = this->base()->size() % round - rank_ * block_;  // of the last round
  size_ = this->base()->size() / round * block_ + std::clamp<std::int64_t>(rest, 0, block_);
}

std::int64_t DealtBlocks::index_in_base(std::int64_t index) const {
  const std::int64_t block = index / block_ * world_size_ + rank_;
  return block * block_ + index % block_;
}

}  // namespace lockstep::data
