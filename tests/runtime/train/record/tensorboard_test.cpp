// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/tensorboard.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/train/record/tf_record.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class TensorBoard : public testing::Test {
 protected:
  TensorBoard() {
    std::string pattern = (fs::temp_directory_path() / "lockstep-tensorboard-XXXXXX").string();
    directory_ = ::mkdtemp(pattern.data());
  }
  ~TensorBoard() override { fs::remove_all(directory_); }
  /// Files are made by the writer's thread, in a directory that has to be there.
  void TearDown() override { output_.flush(std::chrono::minutes(5)); }

  /// Until all that was told stands in the files.
  void flush() { EXPECT_TRUE(output_.flush(std::chrono::minutes(5))); }

  std::string directory_;
  train::OutputWriter output_{[](const std::string& trouble) { ADD_FAILURE() << trouble; }};
};

std::string slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// CRC-32C bit by bit, masked as TFRecord does it.
std::uint32_t masked_crc(std::string_view bytes) {
  std::uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

template <class T>
T value_at(const std::string& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// The payloads of a file of TFRecords, whose two checksums must be right.
std::vector<std::string> records_in(const std::string& path) {
  const std::string bytes = slurp(path);
  std::vector<std::string> records;
  for (std::size_t at = 0; at < bytes.size();) {
    const auto length = value_at<std::uint64_t>(bytes, at);
    EXPECT_EQ(value_at<std::uint32_t>(bytes, at + 8), masked_crc(std::string_view(bytes).substr(at, 8)));
    records.push_back(bytes.substr(at + 12, length));
    EXPECT_EQ(value_at<std::uint32_t>(bytes, at + 12 + length), masked_crc(records.back()));
    at += 16 + length;
  }
  return records;
}

TEST_F(TensorBoard, ChecksumOfTheStandardVectorIsRight) {
  const std::uint32_t crc = 0xe3069283;  // RFC 3720's family: CRC-32C of "123456789"
  EXPECT_EQ(masked_crc("123456789"), std::rotr(crc, 15) + 0xa282ead8u);
}

TEST_F(TensorBoard, WritesAVersionAndScalarsAsEvents) {
  TensorBoardWriter writer(output_, directory_);
  writer.scalar("loss", 300, 0.5f);
  flush();
  const std::vector<std::string> records = records_in(writer.path());
  ASSERT_EQ(records.size(), 2u);
  // Field 1, a double, comes first in both: the time. What follows is the encoding that protobuf prescribes.
  EXPECT_EQ(records[0][0], '\x09');
  EXPECT_EQ(records[0].substr(9),
            "\x1a\x0d"
            "brain.Event:2");
  EXPECT_EQ(records[1][0], '\x09');
  EXPECT_NEAR(value_at<double>(records[1], 1), static_cast<double>(std::time(nullptr)), 100);
  const std::string value = std::string(
                                "\x0a\x04"
                                "loss"
                                "\x15") +
                            std::string("\0\0\0\x3f", 4);
  EXPECT_EQ(records[1].substr(9),
            "\x10\xac\x02"
            "\x2a\x0d"
            "\x0a\x0b" +
                value);
}

TEST_F(TensorBoard, NamesItsFileSoThatTensorBoardFindsIt) {
  const TensorBoardWriter writer(output_, directory_);
  EXPECT_THAT(writer.path(),
              testing::MatchesRegex(directory_ + "/events\\.out\\.tfevents\\.[0-9]+\\..+\\.[0-9]+\\.[0-9]+"));
}

TEST_F(TensorBoard, OpensANewFileEachTime) {
  const TensorBoardWriter first(output_, directory_);
  const TensorBoardWriter second(output_, directory_);
  EXPECT_NE(first.path(), second.path());
}

// TensorBoard reads files in the order of their names.
TEST_F(TensorBoard, NamesALaterFileLaterWhateverTheClockSays) {
  for (const char* name : {"4000000000.host.9.0", "1.host.9.0", "nonsense", "", "99999999999999999999.host.9.0"}) {
    std::ofstream(directory_ + "/events.out.tfevents." + name).put('x');
  }
  const TensorBoardWriter writer(output_, directory_);
  EXPECT_THAT(writer.path(), testing::HasSubstr("events.out.tfevents.4000000001."));
}

TEST_F(TensorBoard, WritesEveryPoint) {
  TensorBoardWriter writer(output_, directory_);
  for (int step = 0; step < 5000; ++step) writer.scalar("loss", step, 1);
  flush();
  EXPECT_EQ(records_in(writer.path()).size(), 5001u);
}

TEST_F(TensorBoard, DropsThePointsOfLaterStepsAndWhatWasHalfWritten) {
  std::string path;
  std::size_t bytes = 0;
  {
    TensorBoardWriter writer(output_, directory_);
    path = writer.path();
    for (int step = 1; step <= 300; ++step) writer.scalar("loss", step, 1);
    flush();
    bytes = fs::file_size(path);
  }
  fs::resize_file(path, bytes - 3);
  drop_later_events(directory_, 299);
  EXPECT_EQ(records_in(path).size(), 300u);
  const std::string kept = slurp(path);
  drop_later_events(directory_, 299);
  EXPECT_EQ(slurp(path), kept);
  drop_later_events(directory_, 7);
  EXPECT_EQ(records_in(path).size(), 8u);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 1) << "nothing else is left there";
}

TEST_F(TensorBoard, TellsThoseWhoHaveReadLaterPointsToForgetThem) {
  const TensorBoardWriter writer(output_, directory_, 300);
  flush();
  const std::vector<std::string> records = records_in(writer.path());
  ASSERT_EQ(records.size(), 2u);
  // Field 2, the step, and field 7, a SessionLog whose status is START.
  EXPECT_EQ(records[1].substr(9),
            "\x10\xac\x02"
            "\x3a\x02\x08\x01");
}

TEST_F(TensorBoard, SetsAsideAFileFromWhichItCannotDropPoints) {
  const std::string name = "events.out.tfevents.1.host.1.0";
  fs::create_symlink(name, directory_ + "/" + name);  // to itself
  drop_later_events(directory_, 7);
  EXPECT_TRUE(fs::is_symlink(directory_ + "/earlier-1/" + name));
  EXPECT_FALSE(fs::is_symlink(directory_ + "/" + name));
}

// A record must not end a run. Reading the pipe would wait for a writer for ever.
TEST_F(TensorBoard, SetsAsideWhatIsNoRegularFile) {
  const std::string pipe = "events.out.tfevents.1.host.1.0";
  const std::string folder = "events.out.tfevents.2.host.1.0";
  ASSERT_EQ(mkfifo((directory_ + "/" + pipe).c_str(), 0600), 0);
  fs::create_directory(directory_ + "/" + folder);
  drop_later_events(directory_, 7);
  EXPECT_TRUE(fs::is_fifo(directory_ + "/earlier-1/" + pipe) || fs::is_fifo(directory_ + "/earlier-2/" + pipe));
  EXPECT_FALSE(fs::exists(directory_ + "/" + pipe));
  EXPECT_FALSE(fs::exists(directory_ + "/" + folder));
}

// Protobuf takes the length as an int: that of 3 GiB would be negative.
TEST(TfRecords, EndBeforeOneOfMoreThan64MiB) {
  const std::string content = tf_record("a") + tf_record(std::string((64 << 20) + 1, 'x')) + tf_record("b");
  EXPECT_THAT(tf_records_in(content), testing::ElementsAre("a"));
  const std::string longest = tf_record(std::string(64 << 20, 'x')) + tf_record("b");
  EXPECT_EQ(tf_records_in(longest).size(), 2u);
}

TEST_F(TensorBoard, SaysWhereItCannotWrite) {
  std::ofstream(directory_ + "/file").put('x');
  std::vector<std::string> troubles;
  train::OutputWriter output([&](const std::string& trouble) { troubles.push_back(trouble); });
  const TensorBoardWriter writer(output, directory_ + "/file");
  EXPECT_FALSE(output.flush(std::chrono::minutes(5)));
  EXPECT_TRUE(output.perform([] {}, std::chrono::minutes(5)));  // behind what it says
  EXPECT_THAT(troubles, testing::ElementsAre(testing::HasSubstr("Not a directory; training goes on")));
  EXPECT_EQ(output.lost().at(writer.path()), 1u);
}

}  // namespace
}  // namespace lockstep
