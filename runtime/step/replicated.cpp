// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/replicated.h"

#include <charconv>
#include <chrono>
#include <future>
#include <optional>
#include <string>

#include "runtime/base/error.h"
#include "runtime/tensor/as_error.h"
#include "runtime/tensor/gpu_streams.h"

namespace lockstep::step {

namespace {

/// Shorter than any sensible timeout of a collective.
constexpr std::chrono::milliseconds kSignOfLife{500};
const std::string kStillWorking = "...";
constexpr char kSeparator = '\0';

std::optional<Error> failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& exception) {
    return as_error(exception);
  }
  return std::nullopt;
}

std::string encode(const std::optional<Error>& failure) {
  if (!failure) return {};
  return std::to_string(static_cast<int>(failure->code())) + kSeparator + failure->advice() + kSeparator +
         failure->what();
}

std::optional<Error> decode(const std::string& text) {
  if (text.empty()) return std::nullopt;
  const std::size_t advice = text.find(kSeparator) + 1;
  const std::size_t what = text.find(kSeparator, advice) + 1;
  int code = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code);
  const bool reads = error == std::errc() && *end == kSeparator && advice > 0 && what > advice;
  if (!reads || code < 1 || code > 255) {
    throw PeerError("what rank 0 says of its failure cannot be read", "Start every rank with the same program.");
  }
  return Error(static_cast<ExitCode>(code), text.substr(what), text.substr(advice, what - 1 - advice));
}

}  // namespace

void on_rank_zero(comm::Communicator& communicator, const std::function<void()>& work) {
  std::optional<Error> failure;
  if (communicator.size() == 1) {
    work();
  } else if (communicator.rank() == 0) {
    // Work that it appends to a GPU's stream is this thread's: it reads what is there and does not outrun it.
    gpu::StreamsOfThread streams;
    std::future<std::optional<Error>> result =
        std::async(std::launch::async, [&] { return failure_of([&] { streams.run(work); }); });
    while (result.wait_for(kSignOfLife) == std::future_status::timeout) communicator.broadcast_text(kStillWorking, 0);
    failure = result.get();
    streams.adopt();
    communicator.broadcast_text(encode(failure), 0);
  } else {
    std::string text;
    do {
      text = communicator.broadcast_text(text, 0);
    } while (text == kStillWorking);
    failure = decode(text);
  }
  if (failure) throw *failure;
}

}  // namespace lockstep::step
