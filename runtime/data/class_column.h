// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace lockstep::data {

/// A column of class names or numbers, read cell by cell; which of them they are is known at its end.
class ClassColumn {
 public:
  /// Cells of a class; false where there are too many different ones for classes. `where` names the place of the cell.
  bool add(std::string_view cell, const std::string& where);

  /// The classes that the cells stand for.
  struct Classes {
    std::int64_t count = 0;
    std::vector<std::string> names;  ///< none where they are numbers
    std::vector<std::int64_t> labels;
  };
  /// With `names`, cells are these; otherwise numbers from 0 on, or names, sorted, where one of them is no number.
  /// `count`: 0, or the number of classes. Throws StorageError that names the place of a cell that is no class.
  Classes finish(const std::vector<std::string>& names, std::int64_t count) const;

 private:
  struct Cell {
    std::string text;
    std::string where;  ///< it came first
  };
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<Cell> cells_;          // the different ones, in the order in which they came
  std::vector<std::uint32_t> rows_;  // the place in cells_ of each row
};

}  // namespace lockstep::data
