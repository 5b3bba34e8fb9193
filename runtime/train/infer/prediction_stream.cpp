// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/prediction_stream.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::train {

namespace {

constexpr std::size_t kMostLineBytes = std::size_t{1} << 20;
/// Lines that are answered together.
constexpr std::size_t kMostLines = 256;

/// The lines of a descriptor, as many at a time as are there.
class Lines {
 public:
  explicit Lines(int input) : input_(input) {}

  /// At least one, and at most kMostLines; none at the end.
  std::vector<std::string> next() {
    std::vector<std::string> lines;
    while (lines.empty()) {
      std::size_t begin = 0;
      for (std::size_t end; lines.size() < kMostLines && (end = text_.find('\n', begin)) != std::string::npos;) {
        take(text_.substr(begin, end - begin), lines);
        begin = end + 1;
      }
      text_.erase(0, begin);
      if (!lines.empty()) break;
      if (ended_) {
        take(std::move(text_), lines);
        text_.clear();
        break;
      }
      if (text_.size() > kMostLineBytes) throw StorageError("--input -: a line is longer than 1 MiB");
      read_more();
    }
    return lines;
  }

 private:
  static void take(std::string line, std::vector<std::string>& lines) {
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) lines.push_back(std::move(line));
  }

  void read_more() {
    char buffer[1 << 16];
    ssize_t got = 0;
    do {
      got = ::read(input_, buffer, sizeof buffer);
    } while (got < 0 && errno == EINTR);
    if (got < 0) throw StorageError("--input -: cannot read: " + std::generic_category().message(errno));
    ended_ = got == 0;
    text_.append(buffer, static_cast<std::size_t>(got));
  }

  int input_;
  std::string text_;
  bool ended_ = false;
};

/// One path's predictions, or its failure.
std::vector<Prediction> predicted(Predictor& predictor, const std::string& path) {
  try {
    return predictor.predict(std::vector{path});
  } catch (const UsageError& error) {
    return {{.place = {path}, .numbers = {}, .error = error.what()}};
  } catch (const StorageError& error) {
    return {{.place = {path}, .numbers = {}, .error = error.what()}};
  }
}

std::vector<Prediction> predicted(Predictor& predictor, const std::vector<std::string>& paths) {
  try {
    return predictor.predict(paths);
  } catch (const UsageError&) {
  } catch (const StorageError&) {
  }
  std::vector<Prediction> all;
  for (const std::string& path : paths) {
    for (Prediction& prediction : predicted(predictor, path)) all.push_back(std::move(prediction));
  }
  return all;
}

}  // namespace

StreamCounts predict_lines(Predictor& predictor, int input, PredictionLine line,
                           const std::function<void(std::string_view)>& emit) {
  emit(header_of(line));
  StreamCounts counts;
  Lines lines(input);
  for (std::vector<std::string> paths = lines.next(); !paths.empty(); paths = lines.next()) {
    std::string answer;
    for (const Prediction& prediction : predicted(predictor, paths)) {
      ++counts.inputs;
      if (!prediction.error.empty()) ++counts.failures;
      answer += prediction.error.empty() ? line_of(line, prediction.place, prediction.numbers)
                                         : line_of_failure(line, prediction.place, prediction.error);
    }
    emit(answer);
  }
  return counts;
}

}  // namespace lockstep::train
