// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/input_lines.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"

namespace lockstep::train {

namespace {

constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;
constexpr std::size_t kMostLines = 256;

void take(std::string line, std::vector<std::string>& lines) {
  if (line.ends_with('\r')) line.pop_back();
  lines.push_back(std::move(line));
}

}  // namespace

std::vector<std::string> InputLines::next() {
  std::vector<std::string> lines;
  while (lines.empty()) {
    std::size_t begin = 0;
    for (std::size_t end = 0; lines.size() < kMostLines && (end = text_.find('\n', begin)) != std::string::npos;) {
      take(text_.substr(begin, end - begin), lines);
      begin = end + 1;
    }
    text_.erase(0, begin);
    if (!lines.empty()) break;
    if (ended_) {
      if (!text_.empty()) take(std::exchange(text_, {}), lines);
      break;
    }
    if (text_.size() > kMostLineBytes) throw StorageError("--input -: a line is longer than 1 MiB");
    read_more();
  }
  return lines;
}

void InputLines::read_more() {
  char buffer[1 << 16];
  ssize_t got = 0;
  do {
    got = ::read(input_, buffer, sizeof buffer);
  } while (got < 0 && errno == EINTR);
  if (got < 0) throw StorageError("--input -: cannot read: " + std::generic_category().message(errno));
  ended_ = got == 0;
  text_.append(buffer, static_cast<std::size_t>(got));
}

}  // namespace lockstep::train
