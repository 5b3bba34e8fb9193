// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/inputs/svmlight_inputs.h"

#include <gmock/gmock.h>

#include "runtime/base/error.h"
#include "runtime/data/make_dataset.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class SvmlightInputsTest : public testing::Test {
 protected:
  static std::vector<float> values_of(const Inputs& inputs, std::int64_t index) {
    std::vector<float> values(static_cast<std::size_t>(inputs.sample_shape().numel()), 7);
    float target = 1;
    inputs.get({.index = index}, {.values = values, .target = std::span(&target, 1)});
    return values;
  }
  static std::string error(const Inputs& inputs, std::int64_t index) {
    return error_of([&] { values_of(inputs, index); });
  }

  TemporaryFolder folder_;
};

TEST_F(SvmlightInputsTest, RowsAreReadWithATargetOfAnyKindAndWithoutOne) {
  const std::string path =
      folder_.write_text("a.svm", "# none\n+1 1:0.5 3:-2\n\n2:4 3:1 # no target\nunknown 2:8\n1,2 1:3\n0\n");
  const SvmlightInputs inputs({path}, 3, false);
  ASSERT_EQ(inputs.size(), 5);
  EXPECT_THAT(values_of(inputs, 0), ElementsAre(0.5, 0, -2));
  EXPECT_THAT(values_of(inputs, 1), ElementsAre(0, 4, 1));
  EXPECT_THAT(values_of(inputs, 2), ElementsAre(0, 8, 0));
  EXPECT_THAT(values_of(inputs, 3), ElementsAre(3, 0, 0));
  EXPECT_THAT(values_of(inputs, 4), ElementsAre(0, 0, 0));
  EXPECT_EQ(inputs.place(2).path, path);
  EXPECT_EQ(inputs.place(2).row, 2);
}

TEST_F(SvmlightInputsTest, IndicesBeginWhereThoseOfTheTrainingDataDo) {
  const std::string path = folder_.write_text("a.svm", "0:1 2:3\n1:1 3:4\n");
  const SvmlightInputs zero({path}, 3, true), one({path}, 3, false);
  EXPECT_THAT(values_of(zero, 0), ElementsAre(1, 0, 3));
  EXPECT_THAT(error(zero, 1), HasSubstr("a.svm:2: index 3: the model's 3 features have the indices 0 to 2"));
  EXPECT_THAT(error(one, 0), HasSubstr("a.svm:1: index 0: the model's 3 features have the indices 1 to 3"));
  EXPECT_THAT(values_of(one, 1), ElementsAre(1, 0, 4));
}

TEST_F(SvmlightInputsTest, WhatCannotBeReadIsASampleOfItsOwn) {
  const std::string text = "1 1:1\n1 spam\n1 2:5\n";
  const std::string rows = folder_.write_text("a.svm", text);
  Bytes packed = gzipped(Bytes(text.begin(), text.end()));
  packed.resize(packed.size() / 2);
  const SvmlightInputs inputs({rows, folder_.write("b.svm.gz", packed), folder_.write_text("c.svm", ""), rows}, 2,
                              false);
  ASSERT_EQ(inputs.size(), 8);
  EXPECT_THAT(values_of(inputs, 0), ElementsAre(1, 0));
  EXPECT_THAT(error(inputs, 1), HasSubstr("a.svm:2: expected INDEX:VALUE, found \"spam\""));
  EXPECT_THAT(values_of(inputs, 2), ElementsAre(0, 5));
  EXPECT_THAT(error(inputs, 3), HasSubstr("b.svm.gz"));
  EXPECT_THAT(error(inputs, 4), HasSubstr("c.svm: holds no rows"));
  EXPECT_EQ(inputs.place(6).row, 1);
}

TEST_F(SvmlightInputsTest, ARunOfSparseRowsTakesThem) {
  DataOptions options{.train = SvmlightOptions{.files = {"gone.svm"}, .zero_based = true}};
  options.prepared = Preparation{.trained = {.sample_shape = {2}, .classes = 2}};
  const std::string path = folder_.write_text("a.svm", "1:6\n");
  const std::vector<std::string> paths{path};
  EXPECT_THAT(values_of(*open_inputs(options, paths), 0), ElementsAre(0, 6));
  EXPECT_EQ(row_title_of(options), "row");
  const std::vector<std::string> array{folder_.write_text("a.npy", "")};
  EXPECT_THAT([&] { open_inputs(options, array); },
              ThrowsMessage<UsageError>(HasSubstr("the run takes files that end in .svm, ")));
}

TEST_F(SvmlightInputsTest, AModelOfSeveralInputsTakesNoFiles) {
  DataOptions options{.train = RegisteredOptions{}};
  options.prepared = Preparation{.trained = {.sample_shape = {2, 2, 1}, .more_inputs = {{.shape = {3}}}}};
  const std::vector<std::string> paths{folder_.write_text("a.npy", "")};
  EXPECT_THAT([&] { open_inputs(options, paths); },
              ThrowsMessage<UsageError>(HasSubstr("the model takes several inputs, [2, 2, 1] and [3]")));
}

}  // namespace
}  // namespace lockstep::data
