// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/hash.h"
#include "runtime/data/dataset.h"

namespace lockstep::data {

/// A digest that tells data sets apart. Copies of the same files have equal digests: neither path nor time of writing
/// counts. Other data have other digests, with one exception: of more than kMostHashedBytes, and of images in a folder,
/// only a sample of the content is read, and what differs elsewhere at the same size does not show.
struct DataDigest {
  std::string data = {};     ///< which data set of the job: "data.train"
  std::string form = {};     ///< in words: "1500 samples of [8, 8, 1], 10 classes"
  std::string labels = {};   ///< a hash of targets and weights and, where there are, of the classes' names
  std::string content = {};  ///< a hash of what the samples are made of
};

/// Changes with what `labels` and `content` are hashes of.
inline constexpr std::uint32_t kDigestFormat = 1;

/// The hashes to which a data set adds: Dataset::add_to_digest().
struct DataHashes {
  Hash128 labels;
  Hash128 content;
};

/// Reads up to kMostHashedBytes each of content and labels; throws nothing of its own for what cannot be read.
DataDigest digest_of(const std::string& data, const Dataset& dataset);

/// "data.train: 1500 samples of [1], 2 classes -> 1400 samples of [1], 2 classes", "data.train: labels differ",
/// "data.train: content differs": how the data sets in both lists have changed.
std::vector<std::string> changes(const std::vector<DataDigest>& before, const std::vector<DataDigest>& now);

}  // namespace lockstep::data
