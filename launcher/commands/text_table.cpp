// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/text_table.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace lockstep::launcher {

namespace {

constexpr std::size_t kGap = 2;

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

std::string cut(const std::string& text, std::size_t width) {
  if (width_of(text) <= width) return text;
  const std::size_t kept = width < 2 ? width : width - 2;
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at) {
    if (begins_character(text[at]) && seen++ == kept) break;
  }
  return text.substr(0, at) + (width < 2 ? "" : "..");
}

class Layout {
 public:
  Layout(std::vector<TableColumn> columns, std::vector<std::vector<std::string>> rows)
      : columns_(std::move(columns)), rows_(std::move(rows)) {
    for (std::size_t c = columns_.size(); c-- > 0;) {
      if (std::ranges::all_of(rows_, [c](const auto& row) { return row[c].empty(); })) remove(c);
    }
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      widths_.push_back(natural(c));
    }
  }

  void fit(std::size_t width) {
    while (total() > width) {
      shrink(total() - width);
      if (total() <= width) return;
      const auto last = std::ranges::max_element(columns_, {}, &TableColumn::goes);
      if (last->goes == 0) return;
      remove(static_cast<std::size_t>(last - columns_.begin()));
      // What was cut for a column that has left may be whole again.
      for (std::size_t c = 0; c < columns_.size(); ++c) widths_[c] = natural(c);
    }
  }

  std::string text(std::size_t width) const {
    std::vector<std::string> titles;
    for (const TableColumn& column : columns_) titles.push_back(column.title);
    std::string text = line(titles, width);
    for (const auto& row : rows_) text += line(row, width);
    return text;
  }

 private:
  std::size_t natural(std::size_t c) const {
    std::size_t width = width_of(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c]));
    return width;
  }

  std::size_t total() const {
    std::size_t total = 0;
    for (const std::size_t width : widths_) total += width + kGap;
    return total - std::min(total, kGap);
  }

  /// The columns that leave early are cut first.
  void shrink(std::size_t excess) {
    std::vector<std::size_t> order(columns_.size());
    for (std::size_t c = 0; c < order.size(); ++c) order[c] = c;
    std::ranges::sort(order, std::greater(), [this](std::size_t c) { return columns_[c].goes; });
    for (const std::size_t c : order) {
      const std::size_t least = columns_[c].least;
      if (least == 0 || widths_[c] <= least) continue;
      const std::size_t less = std::min(excess, widths_[c] - least);
      widths_[c] -= less;
      excess -= less;
    }
  }

  void remove(std::size_t c) {
    const auto at = static_cast<std::ptrdiff_t>(c);
    columns_.erase(columns_.begin() + at);
    for (auto& row : rows_) row.erase(row.begin() + at);
    if (c < widths_.size()) widths_.erase(widths_.begin() + at);
  }

  std::string line(const std::vector<std::string>& cells, std::size_t width) const {
    std::string line;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string cell = cut(cells[c], widths_[c]);
      const std::string room(widths_[c] - width_of(cell), ' ');
      line += (c > 0 ? std::string(kGap, ' ') : "") + (columns_[c].right ? room + cell : cell + room);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return (width > 0 ? cut(line, width) : line) + "\n";
  }

  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<std::size_t> widths_;
};

}  // namespace

std::string text_table(std::vector<TableColumn> columns, std::vector<std::vector<std::string>> rows,
                       std::size_t width) {
  Layout layout(std::move(columns), std::move(rows));
  if (width > 0) layout.fit(width);
  return layout.text(width);
}

}  // namespace lockstep::launcher
