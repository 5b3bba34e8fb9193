// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/tensorboard.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <ctime>

namespace lockstep {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

constexpr std::size_t kFlushBytes = 64 << 10;

/// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), which TFRecord uses.
std::uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t crc = byte;
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
      table[byte] = crc;
    }
    return table;
  }();
  std::uint32_t crc = 0xffffffffu;
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

/// The field numbers of tensorflow/core/util/event.proto and framework/summary.proto that scalars need.
namespace field {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr int kSummaryValue = 1;
constexpr int kTag = 1, kSimpleValue = 2;
}  // namespace field

/// A message of what `write` puts into the stream.
template <class Write>
std::string encode(Write&& write) {
  std::string bytes;
  google::protobuf::io::StringOutputStream sink(&bytes);
  CodedOutputStream stream(&sink);
  write(stream);
  stream.Trim();
  return bytes;
}

void write_bytes(CodedOutputStream& stream, int number, std::string_view bytes) {
  stream.WriteTag(WireFormatLite::MakeTag(number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
  stream.WriteVarint32(static_cast<std::uint32_t>(bytes.size()));
  stream.WriteRaw(bytes.data(), static_cast<int>(bytes.size()));
}

void write_wall_time(CodedOutputStream& stream) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  WireFormatLite::WriteDouble(field::kWallTime, now.count(), &stream);
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int at = 0; at < bytes; ++at) text += static_cast<char>(value >> 8 * at & 0xff);
  return text;
}

/// TFRecord masks its checksums, because the checksum of data that embed their own checksum is weak.
std::string masked_crc(std::string_view bytes) { return little_endian(std::rotr(crc32c(bytes), 15) + 0xa282ead8u, 4); }

std::string event_path(const std::string& directory) {
  static std::atomic<unsigned> serial{0};
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"unknown"};
  checkpoint::make_directories(directory);
  return directory + "/events.out.tfevents." + std::to_string(std::time(nullptr)) + "." + host.data() + "." +
         std::to_string(::getpid()) + "." + std::to_string(serial++);
}

}  // namespace

TensorBoardWriter::TensorBoardWriter(const std::string& directory) : file_(event_path(directory)) {
  add_record(encode([](CodedOutputStream& stream) {
    write_wall_time(stream);
    write_bytes(stream, field::kFileVersion, "brain.Event:2");
  }));
  flush();
}

TensorBoardWriter::~TensorBoardWriter() {
  try {
    flush();
  } catch (const StorageError&) {
    // The curves are a convenience: their last points are not worth a crash.
  }
}

void TensorBoardWriter::scalar(std::string_view tag, std::int64_t step, float value) {
  const std::string point = encode([&](CodedOutputStream& stream) {
    write_bytes(stream, field::kTag, tag);
    WireFormatLite::WriteFloat(field::kSimpleValue, value, &stream);
  });
  const std::string summary =
      encode([&](CodedOutputStream& stream) { write_bytes(stream, field::kSummaryValue, point); });
  add_record(encode([&](CodedOutputStream& stream) {
    write_wall_time(stream);
    WireFormatLite::WriteInt64(field::kStep, step, &stream);
    write_bytes(stream, field::kSummary, summary);
  }));
  if (pending_.size() >= kFlushBytes) flush();
}

void TensorBoardWriter::flush() {
  file_.write(std::as_bytes(std::span(pending_)));
  pending_.clear();
}

void TensorBoardWriter::add_record(std::string_view event) {
  const std::string length = little_endian(event.size(), 8);
  pending_ += length + masked_crc(length);
  pending_ += event;
  pending_ += masked_crc(event);
}

}  // namespace lockstep
