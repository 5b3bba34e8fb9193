// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/csv.h"
#include "tests/fuzz/target.h"

namespace lockstep::fuzz {

namespace {

std::vector<std::string> csv_seeds() {
  return {"length,\"a \"\"kind\"\"\"\r\n1.5,cat\r\n-2e3,\"d,og\"\r\n", "1,2,3\n4,5,6\n"};
}

void fuzz_csv(std::string_view bytes) {
  for (const bool header : {true, false}) {
    with_file(bytes, [header](const std::string& path) {
      data::CsvDataset({.files = {path}, .header = header});
      data::CsvDataset({.files = {path}, .header = header, .target_kind = data::TargetKind::kNumbers});
      data::CsvDataset({.files = {path},
                        .header = header,
                        .blanks = data::BlankCells::kFill,
                        .words = data::WordCells::kOneHot,
                        .standardize = true});
    });
  }
}

}  // namespace

Target csv_target() { return {.parse = fuzz_csv, .seeds = csv_seeds(), .rounds = 10'000}; }

}  // namespace lockstep::fuzz
