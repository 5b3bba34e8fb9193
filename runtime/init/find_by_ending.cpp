// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "runtime/base/error.h"
#include "runtime/init/find_kinds.h"

namespace lockstep::init {

namespace {

namespace fs = std::filesystem;

/// Calls `visit` with each kind whose files are told by their endings.
template <class Visit>
void for_each_kind_with_endings(Visit&& visit) {
  const auto visit_one = [&visit]<class Kind>(Kind kind) {
    if constexpr (requires { Kind::kEndings; }) visit(kind);
  };
  std::apply([&](auto... kinds) { (visit_one(kinds), ...); }, data::DatasetKinds());
}

template <class Kind>
bool has_ending_of(const fs::path& path) {
  const std::string name = lower(path.filename().string());
  return std::ranges::any_of(Kind::kEndings, [&name](std::string_view ending) {
    return name.ends_with(ending) || name.ends_with(std::string(ending) + ".gz");
  });
}

}  // namespace

bool has_known_ending(const fs::path& path) {
  bool has = false;
  for_each_kind_with_endings([&]<class Kind>(Kind) { has = has || has_ending_of<Kind>(path); });
  return has;
}

std::string known_endings() {
  std::string text;
  for_each_kind_with_endings([&text]<class Kind>(Kind) {
    text += fmt::format("*{} ({}), also gzipped; ", fmt::join(Kind::kEndings, ", *"), Kind::kFound);
  });
  return text;
}

FoundData find_by_ending(const Split& files) {
  FoundData found;
  for_each_kind_with_endings([&]<class Kind>(Kind) {
    if (!has_ending_of<Kind>(files.train.front())) return;
    for (const std::vector<std::string>& each : {files.train, files.eval}) {
      const auto other = std::ranges::find_if_not(each, has_ending_of<Kind>);
      if (other != each.end()) {
        throw UsageError(fmt::format("{} and {} are data of two kinds", files.train.front(), *other),
                         "Name the files of one data set.");
      }
    }
    typename Kind::Options options = Kind::found(files.train);
    found = {std::string(Kind::kFound), {.train = options}};
    if (files.eval.empty()) return;
    options.files = files.eval;
    found.options.eval = options;
  });
  return found;
}

}  // namespace lockstep::init
