// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/arrays.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "runtime/data/make_dataset.h"
#include "runtime/tensor/half.h"
#include "tests/runtime/data/npy_files.h"
#include "tests/runtime/data/sample_files.h"

namespace lockstep::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NpyTest : public testing::Test {
 protected:
  std::vector<float> read(const Bytes& bytes) const {
    const NpyArray array(folder_.write("a.npy", bytes));
    std::vector<float> values(static_cast<std::size_t>(array.numel()));
    array.read(0, values);
    return values;
  }
  std::string error(const Bytes& bytes) const {
    return error_of([&] { read(bytes); });
  }

  TemporaryFolder folder_;
};

TEST_F(NpyTest, EveryTypeAndByteOrderIsRead) {
  const auto expect = [this]<class T>(const std::string& type, const std::vector<T>& values) {
    std::vector<float> expected;
    for (const T value : values) expected.push_back(static_cast<float>(value));
    std::string shape("(");
    shape += std::to_string(values.size()) + ",)";
    EXPECT_EQ(read(npy_bytes(std::string("<").append(type), shape, elements_of(values))), expected) << type;
    EXPECT_EQ(read(npy_bytes(std::string(">").append(type), shape, elements_of(values, true))), expected) << type;
  };
  expect("u1", std::vector<std::uint8_t>{0, 7, 255});
  expect("u2", std::vector<std::uint16_t>{0, 258, 65535});
  expect("u4", std::vector<std::uint32_t>{1, 70000});
  expect("u8", std::vector<std::uint64_t>{1, std::uint64_t{1} << 40});
  expect("i1", std::vector<std::int8_t>{-128, 127});
  expect("i2", std::vector<std::int16_t>{-300, 300});
  expect("i4", std::vector<std::int32_t>{-70000, 70000});
  expect("i8", std::vector<std::int64_t>{-5, std::int64_t{1} << 40});
  expect("f4", std::vector<float>{-1.5f, 3e20f});
  expect("f8", std::vector<double>{-1.25, 0.1});
  const std::vector<std::uint16_t> halves{float_to_half_bits(-2.5f), float_to_half_bits(0.1f)};
  EXPECT_EQ(read(npy_bytes("<f2", "(2,)", elements_of(halves))),
            (std::vector<float>{-2.5f, half_bits_to_float(halves[1])}));
  EXPECT_EQ(read(npy_bytes(">f2", "(2,)", elements_of(halves, true)))[0], -2.5f);
  EXPECT_THAT(read(npy_bytes("|b1", "(3,)", {0, 1, 9})), ElementsAre(0, 1, 1));
}

TEST_F(NpyTest, ArraysLongerThanAPieceAreReadWhole) {
  std::vector<double> values(10'000);
  std::iota(values.begin(), values.end(), -5000.0);
  const std::vector<float> read_back = read(npy_bytes(">f8", "(10000,)", elements_of(values, true)));
  for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(read_back[i], static_cast<float>(values[i]));
}

TEST_F(NpyTest, EveryVersionOfTheHeaderIsRead) {
  for (const int version : {1, 2, 3}) {
    EXPECT_THAT(read(npy_bytes("<f4", "(1, 2)", elements_of<float>({1, 2}), version)), ElementsAre(1, 2));
  }
  EXPECT_THAT(read(npy_bytes("<f4", "()", elements_of<float>({5}))), ElementsAre(5));
  // A vector lies in both orders.
  EXPECT_THAT(read(npy_bytes("<f4", "(2,)", elements_of<float>({1, 2}), 1, "True")), ElementsAre(1, 2));
}

TEST_F(NpyTest, DamageIsNamed) {
  const Bytes one = elements_of<float>({1});
  EXPECT_THAT(error({}), HasSubstr("a.npy is too short: expected 8 bytes, found 0"));
  EXPECT_THAT(error(idx_bytes({3, 2})), HasSubstr("is no .npy file"));
  EXPECT_THAT(error(npy_bytes("<f4", "(2,)", one)), HasSubstr("expected 8 bytes of elements behind byte 74, found 4"));
  EXPECT_THAT(error(npy_bytes("<f4", "(1,)", elements_of<float>({1, 2}))), HasSubstr("expected 4 bytes"));
  EXPECT_THAT(error(npy_bytes("<f4", "(1, 1)", one, 1, "True")), HasSubstr("the array lies in Fortran order"));
  EXPECT_THAT(error(npy_bytes("<c8", "(1,)", one)), HasSubstr("f2, f4, f8 or bool, found '<c8'"));
  EXPECT_THAT(error(npy_bytes("|O", "(1,)", one)), HasSubstr("found '|O'"));
  EXPECT_THAT(error(npy_bytes("<f4", "(1,)", one, 9)), HasSubstr("expected version 1 to 3 of .npy at byte 6, found 9"));
  EXPECT_THAT(error(npy_bytes("<f4", "(x,)", one)), HasSubstr("byte 61 of the header: expected an extent"));
  EXPECT_THAT(error(npy_bytes("<f4", "(1,)", one, 1, "Maybe")), HasSubstr("expected True or False"));
  EXPECT_THAT(error(npy_bytes("<f4", "(9000000000, 9000000000)", one)), HasSubstr("extents in its header overflow"));
  EXPECT_THAT(error(npy_bytes("<f4", "(99999999999999999999,)", one)), HasSubstr("expected an extent"));
  Bytes long_header = npy_bytes("<f4", "(1,)", one, 2);
  long_header[11] = 0x7f;  // the highest byte of its length
  EXPECT_THAT(error(long_header), HasSubstr("expected at most 65536"));
}

TEST_F(NpyTest, EveryTruncationIsRefused) {
  const Bytes whole = npy_bytes("<f4", "(2,)", elements_of<float>({1, 2}));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(error({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}), "no error") << length;
  }
}

class ArraysTest : public testing::Test {
 protected:
  ArraysOptions of(const Bytes& features, const Bytes& targets, TargetKind kind = TargetKind::kClasses) const {
    return {folder_.write("x.npy", features), folder_.write("y.npy", targets), kind};
  }
  std::string error(const ArraysOptions& options) const {
    return error_of([&] { ArraysDataset set(options); });
  }

  TemporaryFolder folder_;
  Bytes features_ = npy_bytes("|u1", "(3, 2, 2)", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
};

TEST_F(ArraysTest, AClassASample) {
  const ArraysDataset set(of(features_, npy_bytes("<i8", "(3,)", elements_of<std::int64_t>({2, 0, 4}))));
  EXPECT_EQ(set.size(), 3);
  EXPECT_EQ(set.sample_shape(), (Shape{2, 2}));
  EXPECT_EQ(set.target_shape(), Shape());
  EXPECT_EQ(set.classes(), 5);
  EXPECT_EQ(drawn(set, {.index = 2}), (Drawn{.values = {8, 9, 10, 11}, .labels = {4}}));
  EXPECT_THAT(set.describe().labels, ElementsAre(2, 0, 4));
}

TEST_F(ArraysTest, AClassAPosition) {
  const ArraysDataset set(of(features_, npy_bytes("|b1", "(3, 2)", {0, 1, 1, 0, 0, 0})));
  EXPECT_EQ(set.target_shape(), (Shape{2}));
  EXPECT_EQ(set.classes(), 2);
  EXPECT_EQ(set.targets_per_sample(), 2);
  EXPECT_EQ(drawn(set, {.index = 1}), (Drawn{.values = {4, 5, 6, 7}, .labels = {1, 0}}));
}

TEST_F(ArraysTest, Numbers) {
  const ArraysDataset one(
      of(features_, npy_bytes("<f8", "(3,)", elements_of<double>({0.5, 1.5, 2.5})), TargetKind::kNumbers));
  EXPECT_EQ(one.classes(), 0);
  EXPECT_EQ(one.target_shape(), (Shape{1}));
  EXPECT_THAT(drawn(one, {.index = 1}).target, ElementsAre(1.5f));
  const ArraysDataset many(of(features_, npy_bytes("<i2", "(3, 1, 2)", elements_of<std::int16_t>({1, 2, 3, 4, 5, 6})),
                              TargetKind::kNumbers));
  EXPECT_EQ(many.target_shape(), (Shape{1, 2}));
  EXPECT_THAT(drawn(many, {.index = 2}).target, ElementsAre(5, 6));
}

TEST_F(ArraysTest, FeaturesOfOneNumberAreAVectorOfOne) {
  const ArraysDataset set(of(npy_bytes("<f4", "(2,)", elements_of<float>({1, 2})), npy_bytes("|u1", "(2,)", {0, 1})));
  EXPECT_EQ(set.sample_shape(), (Shape{1}));
  EXPECT_EQ(drawn(set, {.index = 1}).values, std::vector<float>{2});
}

TEST_F(ArraysTest, WithAVocabularyFeaturesAreTexts) {
  ArraysOptions options = of(npy_bytes("<u2", "(2, 3)", elements_of<std::uint16_t>({1, 2, 0, 300, 4, 0})),
                             npy_bytes("|u1", "(2,)", {1, 0}));
  options.vocabulary = 301;
  const ArraysDataset one_label(options);
  EXPECT_EQ(one_label.vocabulary(), 301);
  EXPECT_EQ(one_label.sample_shape(), (Shape{3}));
  EXPECT_EQ(one_label.target_shape(), Shape());
  EXPECT_EQ(one_label.describe().vocabulary, 301);
  EXPECT_EQ(drawn(one_label, {.index = 1}), (Drawn{.tokens = {300, 4, 0}, .labels = {0}}));
  options.targets = folder_.write("z.npy", npy_bytes("|u1", "(2, 3)", {0, 1, 2, 0, 0, 1}));
  const ArraysDataset labelled(options);
  EXPECT_EQ(labelled.target_shape(), (Shape{3}));
  EXPECT_EQ(drawn(labelled, {.index = 0}), (Drawn{.tokens = {1, 2, 0}, .labels = {0, 1, 2}}));

  options.vocabulary = 300;
  const ArraysDataset damaged(options);
  EXPECT_THAT(error_of([&] { drawn(damaged, {.index = 1}); }),
              HasSubstr("x.npy: token 300 of sample 1 is outside the vocabulary of 300"));
  options.features = folder_.write("f.npy", npy_bytes("<f4", "(2, 1)", elements_of<float>({1, 2})));
  EXPECT_THAT(error(options), HasSubstr("f.npy: tokens are integers, found elements of type '<f4'"));
  options.features = folder_.write("v.npy", npy_bytes("|u1", "(2, 1, 1)", {1, 2}));
  EXPECT_THAT(error(options), HasSubstr("v.npy: expected texts [N, T], found [2, 1, 1]"));
}

TEST_F(ArraysTest, EvaluationHasTheClassesOfTheTraining) {
  const std::string x = folder_.write("x.npy", features_);
  const std::string y = folder_.write("y.npy", npy_bytes("|u1", "(3,)", {0, 1, 6}));
  const std::string z = folder_.write("z.npy", npy_bytes("|u1", "(3,)", {0, 1, 1}));
  const DataOptions options{.train = ArraysOptions{x, y}, .eval = ArraysOptions{x, z}};
  EXPECT_EQ(describe(options, Split::kEval).classes, 7);
  EXPECT_EQ(make_dataset(options, Split::kEval)->classes(), 7);
}

TEST_F(ArraysTest, WhatDoesNotFitIsNamed) {
  const auto labels = [](const std::string& shape, const Bytes& bytes) { return npy_bytes("|i1", shape, bytes); };
  EXPECT_THAT(error(of(features_, labels("(2,)", {0, 1}))), HasSubstr("x.npy holds 3 samples, but"));
  EXPECT_THAT(error(of(features_, labels("(3,)", {0, 255, 1}))),
              HasSubstr("y.npy: label -1 of sample 1 is outside the 2"));
  ArraysOptions few = of(features_, labels("(3,)", {0, 5, 1}));
  few.classes = 4;
  EXPECT_THAT(error(few), HasSubstr("label 5 of sample 1 is outside the 4 classes"));
  EXPECT_THAT(error(of(features_, npy_bytes("<f4", "(3,)", elements_of<float>({0, 1, 2})))),
              HasSubstr("classes are integers, found elements of type '<f4'"));
  EXPECT_THAT(error(of(features_, labels("(3, 3)", Bytes(9)))),
              HasSubstr("holds labels [3, 3], but " + folder_.path("x.npy") +
                        " samples [3, 2, 2]: expected one a sample, "
                        "or one a position: [3, 2]"));
  EXPECT_THAT(error(of(npy_bytes("|u1", "(0, 2)", {}), labels("(0,)", {}))), HasSubstr("x.npy: holds no samples"));
  EXPECT_THAT(error(of(npy_bytes("|u1", "(3, 0)", {}), labels("(3,)", {0, 1, 2}))), HasSubstr("rows have no elements"));
  EXPECT_THAT(error(of(npy_bytes("|u1", "()", {1}), labels("(1,)", {0}))), HasSubstr("1 to 6 dimensions, found []"));
  EXPECT_THAT(error(of(features_, npy_bytes("<i8", "(3,)", elements_of<std::int64_t>({0, std::int64_t{1} << 60, 1})))),
              HasSubstr("is too high for a class"));
  ArraysOptions later = of(features_, labels("(3, 2)", {0, 1, 0, 1, 0, 9}));
  later.classes = 2;
  const ArraysDataset set(later);  // labels of positions are looked at as they come
  EXPECT_THAT(error_of([&] { drawn(set, {.index = 2}); }), HasSubstr("label 9 of sample 2 is outside the 2 classes"));
}

TEST(ArraysDataset, SamplesHaveTheWeightsOfAFile) {
  const TemporaryFolder folder;
  const auto options = [&](const std::string& shape, const std::vector<float>& weights) {
    return ArraysOptions{
        .features = folder.write("x.npy", npy_bytes("<f4", "(3, 2)", elements_of<float>({1, 2, 3, 4, 5, 6}))),
        .targets = folder.write("y.npy", npy_bytes("<i4", "(3,)", elements_of<std::int32_t>({0, 1, 1}))),
        .weights = folder.write("w.npy", npy_bytes("<f4", shape, elements_of(weights)))};
  };
  const ArraysDataset dataset(options("(3,)", {0.5f, 0, 2}));
  EXPECT_TRUE(dataset.weighted());
  EXPECT_TRUE(dataset.describe().weighted);
  EXPECT_THAT(drawn(dataset, {.index = 2}).weight, ElementsAre(2));
  EXPECT_THAT(drawn(dataset, {.index = 1}).weight, ElementsAre(0));
  EXPECT_THAT(drawn(dataset, {.index = 1}).values, ElementsAre(3, 4));
  const auto error = [&](const std::string& shape, const std::vector<float>& weights) {
    return error_of([&] { const ArraysDataset refused(options(shape, weights)); });
  };
  EXPECT_THAT(error("(2,)", {1, 1}), HasSubstr("holds weights [2]"));
  EXPECT_THAT(error("(3, 1)", {1, 1, 1}), HasSubstr("holds weights [3, 1]"));
  EXPECT_THAT(error("(3,)", {1, -1, 1}), HasSubstr("weight -1 of sample 1 is no number >= 0"));
  EXPECT_THAT(error("(3,)", {1, 1, NAN}), HasSubstr("weight nan of sample 2"));
  EXPECT_THAT(error("(3,)", {1, INFINITY, 1}), HasSubstr("weight inf of sample 1"));
}

}  // namespace
}  // namespace lockstep::data
