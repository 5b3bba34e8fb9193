// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/dealt_blocks.h"

#include <gmock/gmock.h>

#include "runtime/data/eval_batches.h"
#include "tests/runtime/data/loader_fixture.h"

namespace lockstep::data {
namespace {

TEST(DealtBlocks, AreTheBlocksOfTheDataSetInTurn) {
  for (const std::int64_t size : {1, 7, 8, 20, 23, 24}) {
    const auto dataset = std::make_shared<Counting>(size);
    for (const std::int64_t block : {1, 4, 8, 50}) {
      const EvalBatches blocks(dataset, block, 0, 1);
      for (const std::int64_t ranks : {1, 2, 3}) {
        std::int64_t together = 0;
        for (std::int64_t rank = 0; rank < ranks; ++rank) {
          const auto mine = std::make_shared<DealtBlocks>(dataset, block, rank, ranks);
          together += mine->size();
          if (mine->size() == 0) continue;
          Loader loader(mine, {.global_batch = block, .shuffle = false, .decode_threads = 2});
          for (std::int64_t at = rank; at < blocks.size(); at += ranks) {
            EXPECT_EQ(labels(loader.next()), labels(blocks[at])) << size << " samples, block " << at << " of " << block;
          }
        }
        EXPECT_EQ(together, size);
      }
    }
  }
}

TEST(DealtBlocks, DrawASampleAsTheDataSetDoes) {
  const auto dataset = std::make_shared<Keyed>();
  const DealtBlocks second(dataset, 4, 1, 2);
  std::array<float, 3> values{};
  std::array<float, 2> target{};
  second.get({.index = 5, .epoch = 2, .seed = 9}, {.values = values, .target = target});
  EXPECT_THAT(values, testing::ElementsAre(13, 2, 9));
  EXPECT_EQ(second.sample_shape(), dataset->sample_shape());
  EXPECT_EQ(second.target_shape(), dataset->target_shape());
}

}  // namespace
}  // namespace lockstep::data
