// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/prediction_file.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>

#include "runtime/base/error.h"
#include "runtime/train/prediction.h"
#include "tests/support/folder.h"

namespace lockstep::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const float kNan = std::numeric_limits<float>::quiet_NaN();

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class PredictionFile : public ::testing::Test {
 protected:
  std::string written(const std::string& name, const Predictions& predictions) {
    write_predictions(folder_ / name, predictions);
    return read_file(folder_ / name);
  }
  Folder folder_;
};

TEST_F(PredictionFile, AsCsvHasALineASampleInOrder) {
  EXPECT_EQ(written("p.csv", {{2}, PredictionKind::kProbabilities, {0.25f, 0.75f, 1.0f, 0.0f, kNan, kNan}}),
            "sample,class,p0,p1\n0,1,0.25,0.75\n1,0,1,0\n2,-1,nan,nan\n");
  EXPECT_EQ(written("v.csv", {{1}, PredictionKind::kValues, {-1.5f, 3.0f}}), "sample,v0\n0,-1.5\n1,3\n");
  EXPECT_EQ(written("none.csv", {{2}, PredictionKind::kProbabilities, {}}), "sample,class,p0,p1\n");
}

TEST_F(PredictionFile, AsJsonLinesHasAnObjectASample) {
  EXPECT_EQ(written("p.jsonl", {{2}, PredictionKind::kProbabilities, {0.25f, 0.75f, kNan, 1.0f}}),
            "{\"sample\":0,\"class\":1,\"probabilities\":[0.25,0.75]}\n"
            "{\"sample\":1,\"class\":-1,\"probabilities\":[null,1]}\n");
  EXPECT_EQ(written("v.jsonl", {{2}, PredictionKind::kValues, {2.0f, -0.5f}}), "{\"sample\":0,\"values\":[2,-0.5]}\n");
}

TEST_F(PredictionFile, NamesClassesThatHaveNames) {
  const Predictions predictions{
      {3}, PredictionKind::kProbabilities, {1, 0, 0, 0, 1, 0, 0, 0, 1, kNan, 0, 0}, {"red", "a \"b\", c", "bl\xff\n"}};
  EXPECT_EQ(written("p.csv", predictions),
            "sample,class,name,p0,p1,p2\n0,0,red,1,0,0\n1,1,\"a \"\"b\"\", c\",0,1,0\n2,2,\"bl\xff\n\",0,0,1\n"
            "3,-1,,nan,0,0\n");
  EXPECT_EQ(written("p.jsonl", predictions),
            "{\"sample\":0,\"class\":0,\"name\":\"red\",\"probabilities\":[1,0,0]}\n"
            "{\"sample\":1,\"class\":1,\"name\":\"a \\\"b\\\", c\",\"probabilities\":[0,1,0]}\n"
            "{\"sample\":2,\"class\":2,\"name\":\"bl\xef\xbf\xbd\\n\",\"probabilities\":[0,0,1]}\n"
            "{\"sample\":3,\"class\":-1,\"name\":\"\",\"probabilities\":[null,0,0]}\n");
}

TEST_F(PredictionFile, AsTextReadsBackToTheSameNumbers) {
  std::vector<float> values{0.1f, 1.0f / 3.0f, 1e-38f, 0.99999994f};
  const std::string text = written("p.csv", {{4}, PredictionKind::kValues, values});
  const char* at = text.c_str() + text.find("\n0,") + 3;
  for (const float value : values) {
    char* end = nullptr;
    EXPECT_EQ(std::strtof(at, &end), value);
    at = end + 1;
  }
}

TEST_F(PredictionFile, AsNpyIsWhatNumpyReads) {
  const std::vector<float> values{1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f};
  const std::string bytes = written("p.npy", {{3}, PredictionKind::kProbabilities, values});
  EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t header = static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]);
  EXPECT_EQ((10 + header) % 64, 0u);
  EXPECT_THAT(bytes.substr(10, header), HasSubstr("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
  EXPECT_EQ(bytes[9 + header], '\n');
  ASSERT_EQ(bytes.size(), 10 + header + 24);
  EXPECT_EQ(std::memcmp(bytes.data() + 10 + header, values.data(), 24), 0);
}

TEST_F(PredictionFile, OfAnswersAPositionIsAnArrayOfTheirShape) {
  const auto header = [](const std::string& bytes) { return bytes.substr(10, bytes.find('}') - 9); };
  const std::string masks = written("m.npy", {{2, 1, 2}, PredictionKind::kMask, {0.5f, 1, 0, 0.25f, 1, 1, 1, 1}});
  EXPECT_EQ(header(masks), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2, 1, 2), }");
  const std::string classes = written("c.npy", {{2, 2}, PredictionKind::kClasses, {0, 3, -1, 7}});
  EXPECT_EQ(header(classes), "{'descr': '<i8', 'fortran_order': False, 'shape': (1, 2, 2), }");
  const std::vector<std::int64_t> labels{0, 3, -1, 7};
  ASSERT_EQ(classes.size() % 64, 32u);
  EXPECT_EQ(std::memcmp(classes.data() + classes.size() - 32, labels.data(), 32), 0);
  EXPECT_EQ(header(written("s.npy", {{}, PredictionKind::kValues, {1, 2}})),
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }");
  EXPECT_THAT([&] { require_prediction_shape("m.csv", {2, 1, 2}); }, ThrowsMessage<UsageError>(HasSubstr("[2, 1, 2]")));
  EXPECT_NO_THROW(require_prediction_shape("m.csv", {4}));
}

TEST_F(PredictionFile, OfAnotherNameIsAnErrorThatNamesTheFormats) {
  for (const char* name : {"p.txt", "p", "csv", "p.npz"}) {
    EXPECT_THAT([&] { require_prediction_format(folder_ / name); },
                ThrowsMessage<UsageError>(HasSubstr(".csv, .jsonl or .npy")))
        << name;
  }
}

TEST_F(PredictionFile, ThatCannotBeThereIsAStorageErrorBeforeAnythingIsComputed) {
  std::filesystem::create_directories(folder_ / "folder.csv");
  std::ofstream(folder_ / "file") << "x";
  for (const char* name : {"folder.csv", "file/p.csv"}) {
    EXPECT_THAT([&] { require_writable(folder_ / name); }, ThrowsMessage<StorageError>(HasSubstr(name)));
  }
  require_writable(folder_ / "new/folders/p.csv");
}

TEST(Prediction, IsTheHighestValueTheFirstOnTiesAndNoneForANan) {
  EXPECT_EQ(class_of(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(class_of(std::vector<float>{kNan, 3}), -1);
  std::vector<float> logits{1000.0f, 1000.0f, -1000.0f};
  softmax(logits);
  EXPECT_EQ(logits, (std::vector<float>{0.5f, 0.5f, 0.0f}));
  std::vector<float> mask{0.0f, 1000.0f, -1000.0f};
  sigmoid(mask);
  EXPECT_EQ(mask, (std::vector<float>{0.5f, 1.0f, 0.0f}));
}

}  // namespace
}  // namespace lockstep::train
