// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/dealt_blocks.h"

#include <algorithm>
#include <utility>

namespace lockstep::data {

DealtBlocks::DealtBlocks(DatasetPtr base, std::int64_t block, std::int64_t rank, std::int64_t world_size)
    : base_(std::move(base)), block_(block), rank_(rank), world_size_(world_size) {
  const std::int64_t round = block_ * world_size_;
  const std::int64_t rest = base_->size() % round - rank_ * block_;  // of the last round
  size_ = base_->size() / round * block_ + std::clamp<std::int64_t>(rest, 0, block_);
}

void DealtBlocks::get(const SampleKey& key, const Sample& sample) const {
  const std::int64_t block = key.index / block_ * world_size_ + rank_;
  base_->get({block * block_ + key.index % block_, key.epoch, key.seed}, sample);
}

}  // namespace lockstep::data
