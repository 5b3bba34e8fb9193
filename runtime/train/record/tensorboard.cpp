// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/record/tensorboard.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "configs/tensorboard.pb.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/base/files/retry.h"
#include "runtime/base/host_name.h"
#include "runtime/train/record/run_files.h"
#include "runtime/train/record/set_aside.h"
#include "runtime/train/record/tf_record.h"

namespace lockstep {
namespace {

using tensorboard::SessionLog;
using tensorboard::Summary;

/// A file of events, as an OutputWriter writes it.
class EventFile final : public train::OutputSink {
 public:
  explicit EventFile(std::string path) : path_(std::move(path)) {}
  std::string name() const override { return path_; }
  std::size_t write(std::string_view bytes) override {
    if (!file_) file_.emplace(path_);
    return file_->write(std::as_bytes(std::span(bytes)));
  }

 private:
  std::string path_;
  std::optional<AppendFile> file_;
};

constexpr const char* kPrefix = "events.out.tfevents.";

tensorboard::Event event_of_now() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  tensorboard::Event event;
  event.set_wall_time(now.count());
  return event;
}

/// 0 where the event names none, as that of a file's version does, and of what is no event.
std::int64_t step_of(std::string_view record) {
  tensorboard::Event event;
  event.ParseFromArray(record.data(), static_cast<int>(record.size()));
  return event.step();
}

/// Keeps the events of steps up to `last`; a file that holds no others stays as it is.
void drop_later_events(const std::filesystem::path& path, std::int64_t last) {
  const std::string content = train::read_record(path);
  const std::string kept = events_up_to(content, last);
  // A record that a killed process left half-written goes too.
  if (kept.size() == content.size()) return;
  train::write_text(path, kept);
}

/// None where they cannot be read; the log says so.
std::vector<std::string> event_files_in(const std::string& directory) {
  try {
    std::vector<std::string> names = with_retries({}, [&] { return list_directory(directory); });
    std::erase_if(names, [](const std::string& name) { return !name.starts_with(kPrefix); });
    return names;
  } catch (const FileError& error) {
    spdlog::warn("{}; TensorBoard's curves may show steps twice or out of order", error.what());
    return {};
  }
}

/// That of an event file's name; 0 where it has none of ten digits, as all have until the year 2286.
std::int64_t time_in(std::string_view name) {
  std::int64_t time = 0;
  name.remove_prefix(std::string_view(kPrefix).size());
  const char* end = std::from_chars(name.data(), name.data() + name.size(), time).ptr;
  return end - name.data() == 10 ? time : 0;
}

/// TensorBoard reads the files in the order of their names. A run that starts twice within a second, or after the clock
/// was set back, has the later time still.
std::string event_path(const std::string& directory) {
  static std::atomic<unsigned> serial{0};
  std::int64_t time = std::time(nullptr);
  for (const std::string& name : event_files_in(directory)) time = std::max(time, time_in(name) + 1);
  return fmt::format("{}/{}{}.{}.{}.{}", directory, kPrefix, time, host_name(), ::getpid(), serial++);
}

}  // namespace

std::string events_up_to(std::string_view content, std::int64_t last) {
  std::string kept;
  for (const std::string_view event : tf_records_in(content)) {
    if (step_of(event) <= last) kept += tf_record(event);
  }
  return kept;
}

void drop_later_events(const std::string& directory, std::int64_t last) {
  for (const std::string& name : event_files_in(directory)) {
    const std::filesystem::path path = std::filesystem::path(directory) / name;
    try {
      drop_later_events(path, last);
    } catch (const FileError& error) {
      if (error.error() != ENOENT) train::set_aside_record(path, error.what());
    } catch (const StorageError& error) {  // no regular file, or more than memory holds
      train::set_aside_record(path, error.what());
    }
  }
}

TensorBoardWriter::TensorBoardWriter(train::OutputWriter& output, const std::string& directory, std::int64_t first_step)
    : output_(output), path_(event_path(directory)), file_(output_.add(std::make_unique<EventFile>(path_))) {
  tensorboard::Event version = event_of_now();
  version.set_file_version("brain.Event:2");
  add_record(version.SerializeAsString());
  if (first_step > 1) {
    tensorboard::Event start = event_of_now();
    start.set_step(first_step);
    start.mutable_session_log()->set_status(SessionLog::START);
    add_record(start.SerializeAsString());
  }
  output_.nudge();
}

void TensorBoardWriter::scalar(std::string_view tag, std::int64_t step, float value) {
  tensorboard::Event event = event_of_now();
  event.set_step(step);
  Summary::Value& point = *event.mutable_summary()->add_value();
  point.set_tag(std::string(tag));
  point.set_simple_value(value);
  add_record(event.SerializeAsString());
}

void TensorBoardWriter::add_record(std::string_view event) { output_.write(file_, tf_record(event)); }

}  // namespace lockstep
