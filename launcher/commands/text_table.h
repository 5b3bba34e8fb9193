// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace lockstep::launcher {

struct TableColumn {
  std::string title;
  bool right = false;     ///< numbers end at the same place
  int goes = 0;           ///< the column with the highest one leaves first where there is no room; 0 stays
  std::size_t least = 0;  ///< its texts may be cut to so many characters before a column leaves; 0: they are not cut
};

/// Lines with a title line. No line has more than `width` characters; 0: as many as it takes. A row has a cell for each
/// column. A column whose cells are all empty is left out. A cut text ends in "..".
std::string text_table(std::vector<TableColumn> columns, std::vector<std::vector<std::string>> rows, std::size_t width);

}  // namespace lockstep::launcher
