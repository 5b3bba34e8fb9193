// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/data/formats/line_reader.h"

namespace lockstep::data {

/// The highest number of features that a sparse row may have, and one more than its highest index.
inline constexpr std::int64_t kMostSparseFeatures = 1 << 24;

/// A value of a sparse row; the index is as the file has it.
struct SparseEntry {
  std::int64_t index = 0;
  float value = 0;
};

/// A line of SVMlight's or LIBSVM's: "TARGET INDEX:VALUE INDEX:VALUE ...".
struct SparseRow {
  std::string_view target;  ///< as it stands in the line; empty where the line begins with INDEX:VALUE
  std::vector<SparseEntry> entries;
};

/// Reads a line that came from `reader`, into which `row.target` points. Returns false where the line holds nothing, or
/// nothing but a comment. Throws StorageError that names file and line: for what is no entry, indices that do not
/// ascend, or a ranking (qid).
bool read_sparse_row(std::string_view line, const LineReader& reader, SparseRow& row);

}  // namespace lockstep::data
