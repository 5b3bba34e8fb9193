// SPDX-License-Identifier: Apache-2.0
// Every model of the zoo trains alike on any number of ranks. Run as 1 to 4 ranks.
#include <gtest/gtest.h>

#include "tests/comm/ddp/model_loop.h"
#include "tests/model_zoo/every_model.h"

namespace lockstep::comm {
namespace {

TEST(EveryModel, TrainsAlikeOnAnyNumberOfRanks) {
  constexpr std::int64_t kSamples = 11;
  for (const model_zoo::examples::ModelExample& example : model_zoo::examples::every_model()) {
    SCOPED_TRACE(example.name);
    expect_alike_on_any_number_of_ranks(example.options, example.input, [&example](std::uint64_t step) {
      return Lesson{batch_of(example, kSamples, step), classes_of(example, kSamples, step),
                    example.input.target_shape.numel()};
    });
  }
}

}  // namespace
}  // namespace lockstep::comm
