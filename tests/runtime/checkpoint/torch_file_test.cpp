// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/torch_file.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/base/error.h"
#include "runtime/checkpoint/pickle.h"
#include "tests/runtime/checkpoint/checkpoint_support.h"
#include "tests/support/hex.h"
#include "tests/support/zip_archive.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;

/// A file that torch.save wrote: tests/golden/families/exchange.py.
std::string stored(const std::string& name) {
  static const auto golden =
      nlohmann::json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/exchange.json"))["torch_save"];
  return file_of_hex(golden.at(name));
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

/// An archive of `names` tensors of `count` floats, all of them the one storage.
std::string archive_of_one_storage(int names, std::uint32_t count) {
  const auto text = [](const std::string& value) { return "X"s + static_cast<char>(value.size()) + "\0\0\0"s + value; };
  std::string number = "J";
  for (int shift = 0; shift < 32; shift += 8) number += static_cast<char>(count >> shift & 0xff);
  const std::string storage =
      "((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + number + "tQ";
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n" + storage + "K\0"s + number + "\x85K\1\x85\x89" +
                             "ccollections\nOrderedDict\n)RtR";
  std::string pickle = "\x80\2}(";
  for (int name = 0; name < names; ++name) pickle += text("w" + std::to_string(name)) + tensor;
  return zip_archive({{"w/data.pkl", pickle + "u."}, {"w/data/0", std::string(4 * count, '\0')}});
}

TEST_F(TorchFile, RefusesAThousandNamesOfOneStorage) {
  constexpr std::uint32_t kFloats = 4 << 20;
  const auto tied = read(archive_of_one_storage(3, kFloats));
  EXPECT_EQ(tied.at("w2").shape(), (Shape{kFloats}));
  EXPECT_THAT(refusal(archive_of_one_storage(6, kFloats)),
              HasSubstr("tensors up to 'w4' take 83886080 bytes, more than"));
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
  // A text of a MiB that is dropped first: values are counted by the bytes.
  const std::string text = "X"s + "\0\0\x10\0"s + std::string(1 << 20, 'x') + "0";
  const std::string deep = "\x80\x02" + text + "N" + std::string(1 << 20, '\x85') + ".";
  EXPECT_EQ(Pickle(deep, "deep", {}).root().items.size(), 1u);
}

// Each takes some hundred bytes of memory.
TEST(Pickle, OfMoreValuesThanHalfItsBytesIsRefused) {
  const std::string many = "\x80\x02]" + std::string(1 << 20, 'N') + ".";
  try {
    const Pickle pickle(many, "many.pth", {});
    FAIL() << "was read";
  } catch (const StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("many.pth: too many values at byte 525"));
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
