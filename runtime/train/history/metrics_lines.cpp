// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/history/metrics_lines.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/files/durable_file.h"

namespace lockstep::train {

void for_each_line(const std::filesystem::path& path, const std::function<bool(std::string_view)>& each) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const InputFile file(path.string());
  std::string text;  // of which the part before the last line's end has been told
  bool too_long = false;
  for (std::uint64_t at = 0; at < file.size();) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, file.size() - at));
    const std::size_t kept = text.size();
    text.resize(kept + count);
    file.read(at, std::as_writable_bytes(std::span(text).subspan(kept)));
    at += count;
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n', kept); end != std::string::npos; end = text.find('\n', begin)) {
      if (!too_long && !each(std::string_view(text).substr(begin, end - begin))) return;
      too_long = false;
      begin = end + 1;
    }
    text.erase(0, begin);
    if (text.size() > kPiece) {
      text.clear();
      too_long = true;
    }
  }
}

}  // namespace lockstep::train
