// SPDX-License-Identifier: Apache-2.0
#include "runtime/init/measure.h"

#include <gmock/gmock.h>

#include <numeric>

#include "tests/runtime/data/sample_files.h"

namespace lockstep::init {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

/// A .npy file of one dimension.
std::string array(const std::vector<float>& values) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) + ",), }";
  header.append(117 - header.size(), ' ').append("\n");
  std::string file = std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header;
  return file.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
}

class MeasureTest : public ::testing::Test {
 protected:
  data::TemporaryFolder folder_;
};

TEST_F(MeasureTest, AColumnOfATableHasItsMeanAndDeviation) {
  const std::string file = folder_.write_text("t.csv", "a,b,c,y\n1e6,3,7,0\n1000002,5,7,1\n");
  const auto measured = measure({.train = data::CsvOptions{.files = {file}}});
  ASSERT_TRUE(measured);
  EXPECT_EQ(measured->samples, 2);
  EXPECT_THAT(measured->normalize.mean, ElementsAre(1000001.0f, 4.0f, 7.0f));
  // A column that never changes stays.
  EXPECT_THAT(measured->normalize.std, ElementsAre(1.0f, 1.0f, 1.0f));
}

TEST_F(MeasureTest, LooksAtSamplesSpreadOverAll) {
  std::vector<float> numbers(2048), zeros(2048);
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  const std::string x = array(numbers), y = array(zeros);
  const auto measured = measure({.train = data::ArraysOptions{.features = folder_.write_text("x.npy", x),
                                                              .targets = folder_.write_text("y.npy", y),
                                                              .target_kind = data::TargetKind::kNumbers}});
  EXPECT_EQ(measured->samples, 512);
  EXPECT_THAT(measured->normalize.mean, ElementsAre(FloatNear(1022.0f, 0.01f)));  // 0, 4, 8 ... 2044
  EXPECT_THAT(measured->normalize.std, ElementsAre(FloatNear(591.2f, 0.1f)));
}

TEST_F(MeasureTest, TargetsOfNumbersHaveTheirMeanAndDeviationOverAllLinesOfATable) {
  std::string text = "x,y\n";
  for (int i = 0; i < 2048; ++i) text += "1," + std::to_string(i) + "\n";
  data::CsvOptions table{.files = {folder_.write_text("t.csv", text)}, .target_kind = data::TargetKind::kNumbers};
  table.standardize = true;
  const auto measured = measure({.train = table});
  EXPECT_EQ(measured->samples, 2048);
  EXPECT_EQ(measured->normalize, data::NormalizeOptions());  // the table does it itself
  EXPECT_THAT(measured->target.mean, ElementsAre(1023.5f));
  EXPECT_THAT(measured->target.std, ElementsAre(FloatNear(591.2f, 0.1f)));
  table.target_kind = data::TargetKind::kClasses;
  EXPECT_EQ(measure({.train = table})->target, data::NormalizeOptions());
}

TEST_F(MeasureTest, AValueThatIsNotFiniteIsRefusedWithItsFileAndSample) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }";
  header.append(117 - header.size(), ' ').append("\n");
  std::string file = std::string("\x93NUMPY\x01\0", 8) + static_cast<char>(header.size()) + '\0' + header;
  std::string x = file + std::string(12, '\0') + std::string("\0\0\xc0\x7f", 4) + std::string(8, '\0');  // a NaN
  const std::string features = folder_.write_text("x.npy", x);
  const std::string targets = folder_.write_text("y.npy", file + std::string(24, '\0'));
  try {
    measure({.train = data::ArraysOptions{
                 .features = features, .targets = targets, .target_kind = data::TargetKind::kNumbers}});
    FAIL();
  } catch (const StorageError& error) {
    EXPECT_EQ(std::string(error.what()), features + ": sample 1 holds nan");
  }
}

TEST_F(MeasureTest, TokensHaveNone) {
  const std::string file = folder_.write_text("t.txt", "abcdefghij");
  EXPECT_FALSE(measure({.train = data::TokensOptions{.files = {file}, .context = 4}}));
}

}  // namespace
}  // namespace lockstep::init
