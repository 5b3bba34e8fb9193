// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/same_data.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <future>
#include <sstream>

#include "comm/group/holders.h"
#include "comm/group/rank_names.h"
#include "runtime/base/error.h"
#include "runtime/train/over_ranks.h"

namespace lockstep::train {

namespace {

using data::DataDigest;

/// The most groups of ranks that a message names.
constexpr std::size_t kNamedParts = 4;
/// Far below any comm.timeout_s.
constexpr std::chrono::milliseconds kSignOfLife(100);

std::string encode(const std::vector<DataDigest>& digests) {
  std::string text;
  for (const DataDigest& digest : digests) {
    for (const std::string* part : {&digest.data, &digest.form, &digest.labels, &digest.content}) text += *part + '\n';
  }
  return text;
}

std::vector<DataDigest> decode(const std::string& text) {
  std::vector<DataDigest> digests;
  std::istringstream lines(text);
  DataDigest digest;
  while (std::getline(lines, digest.data) && std::getline(lines, digest.form) && std::getline(lines, digest.labels) &&
         std::getline(lines, digest.content)) {
    digests.push_back(digest);
  }
  return digests;
}

/// "rank 0 / rank 1"
std::string side_by_side(const std::vector<std::string>& groups) {
  const std::size_t named = std::min(groups.size(), kNamedParts);
  std::string text = fmt::format("{}", fmt::join(groups.begin(), groups.begin() + static_cast<int>(named), " / "));
  return groups.size() == named ? text : fmt::format("{} and {} more", text, groups.size() - named);
}

/// The difference in one part of a data set; `shown`: the values are words that a person reads.
std::string difference(const std::vector<std::string>& values, const std::string& part, bool shown) {
  const comm::Holders holders = comm::holders_of(values);
  if (holders.agree()) return {};
  if (!shown && holders.has_majority()) {
    return fmt::format("{} of {} differ from those of {}", part, comm::rank_names(holders.odd()),
                       comm::rank_names(holders.groups.front()));
  }
  std::vector<std::string> groups;
  for (const std::vector<int>& ranks : holders.groups) {
    const std::string names = comm::rank_names(ranks);
    const std::string& value = values[static_cast<std::size_t>(ranks.front())];
    groups.push_back(shown ? fmt::format("{} ({})", value, names) : names);
  }
  return (shown ? "" : part + " differ: ") + side_by_side(groups);
}

/// Returns once every rank has read its data.
std::vector<DataDigest> read_together(const std::function<std::vector<DataDigest>()>& read,
                                      comm::Communicator& communicator) {
  std::future<std::vector<DataDigest>> digests = std::async(std::launch::async, read);
  const auto is_reading = [&] { return digests.wait_for(kSignOfLife) != std::future_status::ready; };
  try {
    while (any_rank(is_reading(), communicator)) {
    }
  } catch (const PeerError& error) {
    // A read that has begun cannot be given up, and may take minutes until the error is reported.
    if (is_reading()) spdlog::warn("{}; this rank ends once its data has been read", error.what());
    throw;
  }
  return digests.get();
}

}  // namespace

std::vector<std::string> data_differences(const std::vector<std::vector<DataDigest>>& ranks) {
  std::vector<std::string> lines;
  for (std::size_t set = 0; set < ranks.front().size(); ++set) {
    const auto compare = [&](std::string DataDigest::*part, const std::string& name, bool shown) {
      std::vector<std::string> values;
      for (const std::vector<DataDigest>& digests : ranks) values.push_back(digests[set].*part);
      const std::string text = difference(values, name, shown);
      if (!text.empty()) lines.push_back(fmt::format("{}: {}", ranks.front()[set].data, text));
      return !text.empty();
    };
    // The labels and contents of another number of samples differ anyway.
    if (compare(&DataDigest::form, "", true)) continue;
    compare(&DataDigest::labels, "labels", false);
    compare(&DataDigest::content, "contents", false);
  }
  return lines;
}

std::vector<DataDigest> require_same_data(const std::function<std::vector<DataDigest>()>& read,
                                          comm::Communicator& communicator) {
  std::vector<DataDigest> mine = read_together(read, communicator);
  std::vector<std::vector<DataDigest>> ranks;
  for (const std::string& text : communicator.all_gather_text(encode(mine))) {
    ranks.push_back(decode(text));
    if (ranks.back().size() == mine.size()) continue;
    throw PeerError(fmt::format("what rank {} says of its data cannot be read", ranks.size() - 1),
                    "Start every rank with the same program.");
  }
  const std::vector<std::string> lines = data_differences(ranks);
  if (lines.empty()) return mine;
  throw UsageError(fmt::format("the ranks see different data:\n  {}", fmt::join(lines, "\n  ")),
                   "Give every rank the same files.");
}

}  // namespace lockstep::train
