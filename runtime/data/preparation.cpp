// SPDX-License-Identifier: Apache-2.0
#include "runtime/data/preparation.h"

#include <filesystem>
#include <utility>

#include "runtime/data/make_dataset.h"

namespace lockstep::data {

Preparation preparation_of(const DataOptions& options, const Dataset& train) {
  Preparation preparation{.trained = describe(train)};
  train.add_to_preparation(preparation);
  if (const auto* const tokens = std::get_if<TokensOptions>(&options.train)) {
    preparation.tokenizer = read_tokenizer_files(*tokens);
    for (TokenizerFile& file : preparation.tokenizer) file.name = std::filesystem::path(file.name).filename().string();
  }
  return preparation;
}

void prepare(DataOptions& options, Preparation preparation) { options.prepared = std::move(preparation); }

}  // namespace lockstep::data
