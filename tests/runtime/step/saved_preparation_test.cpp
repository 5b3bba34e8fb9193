// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/saved_preparation.h"

#include <gmock/gmock.h>

#include "configs/checkpoint.pb.h"
#include "runtime/base/error.h"

namespace lockstep::step {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(SavedPreparation, ComesBackAsItWas) {
  const data::Preparation preparation{
      .trained = {.samples = 7,
                  .sample_shape = {4, 4, 3},
                  .more_inputs = {{{5}, 0}, {{6}, 50}},
                  .classes = 3,
                  .target_shape = {4, 4},
                  .targets_per_sample = 16,
                  .weighted = true,
                  .target_summary = {.mean = {0.1}, .common_class = 2}},
      .class_names = {"a", "b\n", "c"},
      .table = data::TableEncoding{.file_columns = 2, .columns = {{.name = "age", .fill = 2.5}}},
      .tokenizer = {{"vocab.json", std::string("{\0}", 3)}}};
  checkpoint::TrainingState state;
  EXPECT_EQ(saved_preparation(state, "state.pb"), std::nullopt);
  save_preparation(preparation, state);
  EXPECT_EQ(saved_preparation(state, "state.pb"), preparation);
}

TEST(SavedPreparation, WithExtentsThatNothingHasIsRefused) {
  for (const std::int64_t extent : {std::int64_t{-1}, std::int64_t{1} << 41}) {
    checkpoint::TrainingState state;
    save_preparation({.trained = {.sample_shape = {4}}}, state);
    state.mutable_preparation()->mutable_input(0)->set_shape(0, extent);
    EXPECT_THAT([&] { saved_preparation(state, "state.pb"); },
                ThrowsMessage<StorageError>(HasSubstr("state.pb has the shape of a sample that nothing can have")));
  }
  checkpoint::TrainingState state;
  state.mutable_preparation();
  EXPECT_THROW(saved_preparation(state, "state.pb"), StorageError);
}

}  // namespace
}  // namespace lockstep::step
