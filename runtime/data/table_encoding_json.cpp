// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/json_text.h"
#include "runtime/data/dataset_kind.h"
#include "runtime/data/table_encoding.h"

namespace lockstep::data {

namespace {

using TableJson = nlohmann::json;

constexpr int kTableVersion = 1;
constexpr std::size_t kMostTableText = 256 << 20;
constexpr std::int64_t kMostTableColumns = 1 << 18;  ///< as CsvReader has it
constexpr std::int64_t kMostTableWidth = 1 << 24;

/// A text of a file, which may be no UTF-8, as JSON has to be: then its bytes as numbers.
TableJson json_of(const std::string& text) {
  try {
    static_cast<void>(TableJson(text).dump());
    return text;
  } catch (const TableJson::exception&) {
    TableJson bytes = TableJson::array();
    for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
  }
}

TableJson json_of(const std::vector<std::string>& texts) {
  TableJson list = TableJson::array();
  for (const std::string& text : texts) list.push_back(json_of(text));
  return list;
}

std::optional<std::string> text_in(const TableJson& json) {
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array()) return std::nullopt;
  std::string text;
  for (const TableJson& byte : json) {
    if (!byte.is_number_integer() || byte < 0 || byte > 255) return std::nullopt;
    text += static_cast<char>(byte.get<int>());
  }
  return text;
}

/// Reads fields of an object and says which one is wrong.
class TableFields {
 public:
  TableFields(const TableJson& object, std::string what) : object_(object), what_(std::move(what)) {
    if (!object.is_object()) refuse("is no object");
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw StorageError(fmt::format("{}: the encoding of a table is damaged: {}", what_, why));
  }
  void require(bool holds, std::string_view name, std::string_view rule) const {
    if (!holds) refuse(fmt::format("\"{}\" must be {}", name, rule));
  }
  bool has(const char* name) const { return object_.contains(name); }
  const TableJson& at(const char* name) const {
    const auto found = object_.find(name);
    if (found == object_.end()) refuse(fmt::format("it has no \"{}\"", name));
    return *found;
  }
  std::string text(const char* name) const {
    const std::optional<std::string> text = text_in(at(name));
    require(text.has_value(), name, "a text");
    return *text;
  }
  bool flag(const char* name) const {
    require(at(name).is_boolean(), name, "true or false");
    return at(name).get<bool>();
  }
  double number(const char* name) const {
    require(at(name).is_number(), name, "a number");
    const auto value = at(name).get<double>();
    require(std::isfinite(value), name, "finite");
    return value;
  }
  std::int64_t count(const char* name, std::int64_t most) const {
    const TableJson& value = at(name);
    const bool fits = value.is_number_integer() && value >= 0 && value <= most;
    require(fits, name, fmt::format("a whole number from 0 to {}", most));
    return value.get<std::int64_t>();
  }
  std::vector<std::string> texts(const char* name) const {
    const TableJson& list = at(name);
    require(list.is_array(), name, "a list of texts");
    std::vector<std::string> texts;
    for (const TableJson& each : list) {
      const std::optional<std::string> text = text_in(each);
      require(text.has_value(), name, "a list of texts");
      texts.push_back(*text);
    }
    return texts;
  }

 private:
  const TableJson& object_;
  std::string what_;
};

TableJson json_of(const TableColumn& column) {
  using Kind = TableColumn::Kind;
  const bool number = column.kind == Kind::kNumber;
  const bool embedded = column.kind == Kind::kEmbedded;
  TableJson json{{"name", json_of(column.name)},
                 {"position", column.position},
                 {"kind", number     ? "number"
                          : embedded ? "embedded"
                                     : "category"},
                 {"says_blank", column.says_blank}};
  if (!number) {
    json["values"] = json_of(column.values);
    if (!embedded) json["fill"] = json_of(column.fill_word);
    return json;
  }
  json["fill"] = column.fill;
  if (column.scale) {
    json["mean"] = column.scale->mean;
    json["std"] = column.scale->std;
  }
  return json;
}

bool is_sorted_without_repeats(const std::vector<std::string>& texts) {
  return std::ranges::adjacent_find(texts, std::ranges::greater_equal()) == texts.end();
}

TableColumn column_in(const TableFields& reader, const TableEncoding& encoding) {
  TableColumn column{.name = reader.text("name"),
                     .position = reader.count("position", encoding.file_columns - 1),
                     .says_blank = reader.flag("says_blank")};
  const std::string kind = reader.text("kind");
  reader.require(kind == "number" || kind == "category" || kind == "embedded", "kind",
                 "\"number\", \"category\" or \"embedded\"");
  reader.require(!column.says_blank || encoding.fills_blanks, "says_blank", "false where blanks are not filled");
  if (kind == "number") {
    column.fill = reader.number("fill");
    if (!reader.has("mean")) return column;
    column.scale = {.mean = reader.number("mean"), .std = reader.number("std")};
    reader.require(column.scale->std > 0, "std", "> 0");
    return column;
  }
  column.kind = kind == "embedded" ? TableColumn::Kind::kEmbedded : TableColumn::Kind::kCategory;
  column.values = reader.texts("values");
  reader.require(!column.values.empty() && is_sorted_without_repeats(column.values), "values",
                 "sorted, without repeats, and at least one");
  if (column.kind == TableColumn::Kind::kEmbedded) {
    reader.require(!column.says_blank, "says_blank", "false of an embedded column");
    return column;
  }
  column.fill_word = reader.text("fill");
  const bool fills = std::ranges::binary_search(column.values, column.fill_word);
  reader.require(encoding.fills_blanks ? fills : column.fill_word.empty(), "fill",
                 "one of the values where blanks are filled, and else empty");
  return column;
}

}  // namespace

std::string json_text(const TableEncoding& encoding) {
  TableJson json{{"version", kTableVersion},
                 {"header", encoding.header},
                 {"delimiter", json_of(encoding.delimiter)},
                 {"file_columns", encoding.file_columns},
                 {"fills_blanks", encoding.fills_blanks},
                 {"columns", TableJson::array()},
                 {"target", json_of(encoding.target)},
                 {"weight", json_of(encoding.weight)},
                 {"classes", encoding.classes},
                 {"class_names", json_of(encoding.class_names)}};
  for (const TableColumn& column : encoding.columns) json["columns"].push_back(json_of(column));
  return json.dump();
}

TableEncoding encoding_in(std::string_view text, const std::string& what) {
  const TableJson json = text.size() <= kMostTableText ? parse_json(text) : TableJson(TableJson::value_t::discarded);
  const TableFields reader(json, what);
  if (reader.count("version", 1 << 20) != kTableVersion) {
    reader.refuse(fmt::format("its version is {}; expected {}", reader.at("version").dump(), kTableVersion));
  }
  TableEncoding encoding{.header = reader.flag("header"),
                         .delimiter = reader.text("delimiter"),
                         .file_columns = reader.count("file_columns", kMostTableColumns),
                         .fills_blanks = reader.flag("fills_blanks"),
                         .target = reader.text("target"),
                         .weight = reader.text("weight"),
                         .classes = reader.count("classes", kMostCountedClasses),
                         .class_names = reader.texts("class_names")};
  reader.require(encoding.delimiter.size() == 1, "delimiter", "one character");
  const TableJson& columns = reader.at("columns");
  const bool fits = columns.is_array() && !columns.empty() && std::ssize(columns) < encoding.file_columns;
  reader.require(fits, "columns", "a list of columns, fewer than \"file_columns\"");
  for (const TableJson& each : columns) encoding.columns.push_back(column_in(TableFields(each, what), encoding));
  reader.require(encoding.width() <= kMostTableWidth, "columns",
                 fmt::format("at most {} numbers wide", kMostTableWidth));
  const bool named = encoding.class_names.empty() || std::ssize(encoding.class_names) == encoding.classes;
  reader.require(named, "class_names", "as many as \"classes\"");
  return encoding;
}

}  // namespace lockstep::data
