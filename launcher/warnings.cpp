// SPDX-License-Identifier: Apache-2.0
#include "launcher/warnings.h"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/base/printable.h"
#include "runtime/train/record/stdout_relay.h"
#include "runtime/train/record/terminal.h"
#include "runtime/train/record/write_stderr.h"

namespace lockstep::launcher {

namespace {

std::string_view color_of(spdlog::level::level_enum level) {
  return level == spdlog::level::warn  ? "\033[33m\033[1m"
         : level >= spdlog::level::err ? "\033[31m\033[1m"
                                       : "\033[32m";
}

class WarningSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit WarningSink(bool color) : color_(color) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string text = printable({message.payload.data(), message.payload.size()});
    spdlog::details::log_msg shown = message;
    shown.payload = text;
    spdlog::memory_buf_t line;
    formatter_->format(shown, line);
    std::string words(line.data(), line.size());
    if (color_ && shown.color_range_end > shown.color_range_start) {
      words.insert(shown.color_range_end, "\033[0m");
      words.insert(shown.color_range_start, color_of(shown.level));
    }
    train::StdoutRelay::settle();
    train::write_stderr(words);
  }
  void flush_() override {}

  bool color_;
};

}  // namespace

void log_to_stderr() {
  const auto sink = std::make_shared<WarningSink>(train::shows_color(stderr));
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("lockstep", sink));
  spdlog::set_pattern("%n: %^%l%$: %v");
}

}  // namespace lockstep::launcher
