// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/preparation.h"

#include <filesystem>

#include "runtime/base/files/durable_file.h"
#include "runtime/data/make_dataset.h"

namespace lockstep::data {

namespace {

/// Vocabularies of some hundred thousand tokens take 20 MB.
constexpr std::uint64_t kMostSupportBytes = std::uint64_t{32} << 20;

}  // namespace

Preparation preparation_of(const DataOptions& options, const Dataset& train) {
  Preparation preparation{.trained = describe(train)};
  train.add_to_preparation(preparation);
  for (const NamedFile& file : support_files(options.train)) {
    preparation.files.push_back({.field = file.field,
                                 .name = std::filesystem::path(file.path).filename().string(),
                                 .content = read_file(file.path, kMostSupportBytes)});
  }
  return preparation;
}

void prepare(DataOptions& options, Preparation preparation) { options.prepared = std::move(preparation); }

}  // namespace lockstep::data
