// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tensor/input_spec.h"

namespace lockstep::data {

/// How one column of a table becomes numbers of a sample.
struct TableColumn {
  enum class Kind {
    kNumber,    ///< one number
    kCategory,  ///< a number for each of `values`, 1 for the cell's and 0 for the others
    kEmbedded,  ///< a token, no number: 1 for the first of `values` and so on; 0 for a blank cell or another word
  };
  /// A number x becomes (x - mean) / std.
  struct Scale {
    double mean = 0;
    double std = 1;
    bool operator==(const Scale&) const = default;
  };

  std::string name = {};      ///< empty: the column is known by its position
  std::int64_t position = 0;  ///< in the training files, counted from 0
  Kind kind = Kind::kNumber;
  bool says_blank = false;               ///< one number more: 1 where the cell was blank, else 0
  double fill = 0;                       ///< the number that stands for a blank cell; before `scale`
  std::string fill_word = {};            ///< the kCategory that does; empty where no blank cell is allowed
  std::optional<Scale> scale = {};       ///< of numbers; none: as they stand
  std::vector<std::string> values = {};  ///< the categories: sorted, all different

  /// How many numbers of a sample the column becomes.
  std::int64_t width() const;
  /// Of its token; 0 of a column that is no token.
  std::int64_t vocabulary() const;
  bool operator==(const TableColumn&) const = default;
};

/// How the cells of a table's line become a sample, as it was learned from the training files. With it alone lines of
/// other files are encoded as the training data were.
struct TableEncoding {
  bool header = true;  ///< the first line of a file names its columns
  std::string delimiter = ",";
  std::int64_t file_columns = 0;              ///< that a line of the training files has
  bool fills_blanks = false;                  ///< otherwise a blank cell is an error
  std::vector<TableColumn> columns = {};      ///< the features, in the sample's order
  std::string target = {};                    ///< name of the column to learn; empty: it has none of its own
  std::string weight = {};                    ///< name of the column of weights; empty: none
  std::int64_t classes = 0;                   ///< 0: the target is a number
  std::vector<std::string> class_names = {};  ///< in their order; none where classes are numbers

  /// How many numbers a sample has.
  std::int64_t width() const;
  /// The inputs of a sample beside its numbers: one token [1] for each embedded column.
  std::vector<InputSpec> more_inputs() const;
  /// Whether all columns have a name, so that a file may have them in any order.
  bool is_by_name() const;
  /// The columns' names.
  std::vector<std::string> names() const;
  bool operator==(const TableEncoding&) const = default;
};

/// The columns of one line that fell out of what the training data know.
struct EncodedRow {
  std::vector<std::size_t> unknown = {};  ///< numbers of the encoding's columns whose category the training data lack
};

/// Whether a cell holds no value: it is empty, or NA, N/A, NaN, null or ?, in small letters or capitals. Spaces around
/// it do not count.
bool is_blank_cell(std::string_view cell);

/// A cell without the spaces and tabs around it.
std::string_view trimmed_cell(std::string_view cell);

/// Where a file whose first line is `header` has the encoding's columns: the place of each among the cells of a line.
/// By their names, in any order and beside other columns; the target need not be among them. Without names `header` is
/// any line: all columns of the training files, or the features alone, in the training files' order. Throws UsageError
/// that names the columns that are lacking or come twice.
std::vector<std::size_t> order_in(const TableEncoding& encoding, std::span<const std::string> header);

/// Writes the sample of a line's cells into `row`, encoding.width() numbers, and `tokens`, one for each of
/// encoding.more_inputs(); order[i] is the place of column i among the cells. A category that the training data lack
/// becomes all zeros, or the token 0, and is named in the result. Throws StorageError "column NAME: WHY" for a cell
/// that cannot be encoded.
EncodedRow encode(const TableEncoding& encoding, std::span<const std::string> cells, std::span<const std::size_t> order,
                  std::span<float> row, std::span<std::int64_t> tokens);

/// The number in a cell. Throws StorageError "column NAME: WHY" where it is none.
double number_of_cell(const TableColumn& column, std::string_view cell);
/// Throws such an error where the cell is blank.
void require_word(const TableColumn& column, std::string_view cell);

/// What messages call the column: its name in quotes, or its number.
std::string title_of(const TableColumn& column);

/// The encoding as a JSON text, which encoding_in() reads to an equal one.
std::string json_text(const TableEncoding& encoding);
/// Throws StorageError that says where `text` is no such encoding. `what` names the text in errors.
TableEncoding encoding_in(std::string_view text, const std::string& what);

}  // namespace lockstep::data
