// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "runtime/draft/files.h"
#include "runtime/draft/find_data.h"

namespace lockstep::draft {

/// Tables: the delimiter that the first line has most of; a header where that line has a cell of words above a column
/// of numbers; features are the columns of numbers. The target, the last column where none is named, is a class where
/// it is words or few whole numbers, else a number. Looks at the first rows. Where tables differ in their columns,
/// those that are like the one named train are taken. Throws UsageError where none is named so, and for a table without
/// a column of numbers beside the target.
FoundData find_table(const Split& files, const std::string& target);

}  // namespace lockstep::draft
