// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/torch_file.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/checkpoint/pickle.h"
#include "runtime/tensor/error.h"
#include "tests/runtime/checkpoint/checkpoint_support.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::string bytes_of_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

/// A file that torch.save wrote: tests/golden/families/exchange.py.
std::string stored(const std::string& name) {
  static const auto golden =
      nlohmann::json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/exchange.json"))["torch_save"];
  return bytes_of_hex(golden.at(name));
}

class TorchFile : public testing::Test {
 protected:
  std::string file_of(const std::string& bytes) {
    const std::string path = folder_ / "weights.pth";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::map<std::string, Tensor> read(const std::string& bytes) { return read_torch_file(file_of(bytes)); }
  std::string refusal(const std::string& bytes) {
    try {
      read(bytes);
    } catch (const StorageError& error) {
      return error.what();
    }
    return "was read";
  }

 private:
  ScratchDirectory folder_;
};

void expect_content(const std::map<std::string, Tensor>& tensors) {
  ASSERT_EQ(tensors.size(), 5u);
  EXPECT_EQ(tensors.at("a").shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(tensors.at("a").item(23), 23);
  EXPECT_EQ(tensors.at("b").dtype(), DType::kFloat16);
  EXPECT_EQ(tensors.at("b").item(1), -2);
  EXPECT_EQ(tensors.at("c").as<std::int64_t>()[0], 7);
  // Rows 1 and 2 of the permuted [4, 2, 3] view.
  EXPECT_EQ(tensors.at("d").shape(), (Shape{2, 2, 3}));
  EXPECT_THAT(tensors.at("d").as<float>(), ElementsAre(1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22));
  EXPECT_EQ(tensors.at("e").dtype(), DType::kBool);
}

TEST_F(TorchFile, GivesAStateDict) {
  const auto tensors = read(stored("state_dict"));
  EXPECT_EQ(tensors.at("weight").shape(), (Shape{1, 2}));
  EXPECT_EQ(tensors.at("bias").shape(), (Shape{1}));
}

TEST_F(TorchFile, GivesTensorsOfAllDtypesAndStrides) { expect_content(read(stored("strided"))); }

TEST_F(TorchFile, FindsTheStateWithinACheckpointOfDataParallel) { expect_content(read(stored("within"))); }

TEST_F(TorchFile, GivesParameters) { EXPECT_EQ(read(stored("parameter")).at("w").item(1), 1); }

TEST_F(TorchFile, RefusesWhatIsNoTensor) {
  EXPECT_THAT(refusal(stored("module")), HasSubstr("torch.nn.modules.activation ReLU"));
  EXPECT_THAT(refusal(stored("complex")), HasSubstr("torch ComplexFloatStorage"));
  EXPECT_THAT(refusal(stored("list")), HasSubstr("no state_dict"));
  EXPECT_THAT(refusal("no zip at all"), HasSubstr("weights.pth"));
}

TEST_F(TorchFile, RefusesAPickleThatWouldRunSomething) {
  // os.system("true"), as pickle.dumps() of an object with __reduce__ says it.
  const std::string evil =
      "\x80\x02"
      "cos\nsystem\nq\0X\x04\0\0\0trueq\x01\x85q\x02Rq\x03."s;
  const std::vector<std::string_view> globals{"collections OrderedDict"};
  try {
    const Pickle pickle(evil, "evil.pth", globals);
    FAIL() << "was read";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'os system'"));
  }
}

TEST_F(TorchFile, EveryCutAndEveryFlippedByteEndsWell) {
  const std::string whole = stored("strided");
  for (std::size_t cut = 0; cut < whole.size(); cut += 7) refusal(whole.substr(0, cut));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    refusal(damaged);
  }
  // The first tensor's elements, 0 to 23: their checksum tells.
  const float last = 23;
  std::string damaged = whole;
  const std::size_t element = whole.find(std::string(reinterpret_cast<const char*>(&last), sizeof last));
  ASSERT_NE(element, std::string::npos);
  damaged[element] = static_cast<char>(damaged[element] ^ 1);
  EXPECT_THAT(refusal(damaged), HasSubstr("entry 'data/"));
}

TEST(Pickle, ValuesThatHoldThemselvesEndAsOthersDo) {
  // A list that is appended to itself, and a million nested tuples.
  const Pickle loop(std::string_view("\x80\x02]q\0h\0a.", 9), "loop", {});
  EXPECT_EQ(loop.root().items[0], &loop.root());
  const std::string deep = "\x80\x02N" + std::string(1 << 20, '\x85') + ".";
  EXPECT_EQ(Pickle(deep, "deep", {}).root().items.size(), 1u);
}

}  // namespace
}  // namespace lockstep::checkpoint
