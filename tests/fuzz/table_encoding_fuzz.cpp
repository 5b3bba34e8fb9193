// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/data/table_encoding.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

std::vector<std::string> table_encoding_seeds() {
  const data::TableEncoding encoding{
      .file_columns = 4,
      .fills_blanks = true,
      .columns =
          {{.name = "age", .says_blank = true, .fill = 3, .scale = data::TableColumn::Scale{.mean = 1, .std = 2}},
           {.name = "town",
            .position = 2,
            .kind = data::TableColumn::Kind::kCategory,
            .fill_word = "Ulm",
            .values = {"Bonn", "Ulm"}},
           {.name = "street", .position = 3, .kind = data::TableColumn::Kind::kEmbedded, .values = {"1", "Am Tor"}}},
      .target = "y",
      .classes = 2,
      .class_names = {"no", "yes"}};
  return {data::json_text(encoding)};
}

void fuzz_table_encoding(std::string_view bytes) {
  try {
    const data::TableEncoding encoding = data::encoding_in(bytes, "run");
    if (encoding.width() > 1000) return;
    // What is accepted can be used.
    std::vector<std::string> cells(encoding.columns.size(), "1");
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < cells.size(); ++i) order.push_back(i);
    std::vector<float> row(static_cast<std::size_t>(encoding.width()));
    std::vector<std::int64_t> tokens(encoding.more_inputs().size());
    data::encode(encoding, cells, order, row, tokens);
  } catch (const StorageError&) {
  }
}

}  // namespace

Target table_encoding_target() { return {.parse = fuzz_table_encoding, .seeds = table_encoding_seeds()}; }

}  // namespace lockstep::fuzz
