// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/tensorboard.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>

#include "runtime/train/tf_record.h"

namespace lockstep {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

constexpr std::size_t kFlushBytes = 64 << 10;
constexpr const char* kPrefix = "events.out.tfevents.";

/// The field numbers of tensorflow/core/util/event.proto and framework/summary.proto that scalars need.
namespace field {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kSummaryValue = 1;
constexpr int kStatus = 1, kStart = 1;
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

std::string event_path(const std::string& directory) {
  static std::atomic<unsigned> serial{0};
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host = {"unknown"};
  checkpoint::make_directories(directory);
  return directory + "/" + kPrefix + std::to_string(std::time(nullptr)) + "." + host.data() + "." +
         std::to_string(::getpid()) + "." + std::to_string(serial++);
}

/// Of an Event: 0 where it names none, as those of a file's version do.
std::int64_t step_of(std::string_view event) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(event.data()),
                                                static_cast<int>(event.size()));
  while (const std::uint32_t tag = stream.ReadTag()) {
    std::uint64_t step = 0;
    if (tag == WireFormatLite::MakeTag(field::kStep, WireFormatLite::WIRETYPE_VARINT)) {
      return stream.ReadVarint64(&step) ? static_cast<std::int64_t>(step) : 0;
    }
    if (!WireFormatLite::SkipField(&stream, tag)) break;
  }
  return 0;
}

/// Keeps the events of steps up to `last`; a file that holds no others stays as it is.
void drop_later_events(const std::filesystem::path& path, std::int64_t last) {
  const std::string content = checkpoint::read_file(path.string(), std::numeric_limits<std::uint64_t>::max());
  std::string kept;
  for (const std::string_view event : tf_records_in(content)) {
    if (step_of(event) <= last) kept += tf_record(event);
  }
  // What a killed process left half-written goes too.
  if (kept.size() == content.size()) return;
  const std::filesystem::path temporary = path.parent_path() / ".curves.tmp";
  std::ofstream out(temporary, std::ios::binary);
  out << kept;
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(temporary, path, failed);
  if (!out || failed) {
    throw StorageError("cannot write " + path.string(), "Check the space and the permissions of the run directory.");
  }
}

}  // namespace

void drop_later_events(const std::string& directory, std::int64_t last) {
  for (const std::string& name : checkpoint::list_directory(directory)) {
    if (name.starts_with(kPrefix)) drop_later_events(std::filesystem::path(directory) / name, last);
  }
}

TensorBoardWriter::TensorBoardWriter(const std::string& directory, std::int64_t first_step)
    : file_(event_path(directory)) {
  add_record(encode([](CodedOutputStream& stream) {
    write_wall_time(stream);
    write_bytes(stream, field::kFileVersion, "brain.Event:2");
  }));
  if (first_step > 1) {
    const std::string start =
        encode([](CodedOutputStream& stream) { WireFormatLite::WriteInt32(field::kStatus, field::kStart, &stream); });
    add_record(encode([&](CodedOutputStream& stream) {
      write_wall_time(stream);
      WireFormatLite::WriteInt64(field::kStep, first_step, &stream);
      write_bytes(stream, field::kSessionLog, start);
    }));
  }
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

void TensorBoardWriter::add_record(std::string_view event) { pending_ += tf_record(event); }

}  // namespace lockstep
