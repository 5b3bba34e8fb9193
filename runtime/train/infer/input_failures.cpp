// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/input_failures.h"

#include <nlohmann/json.hpp>

namespace lockstep::train {

std::map<std::int64_t, std::string> failures_of_all(const std::map<std::int64_t, std::string>& mine,
                                                    comm::Communicator& communicator) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [index, error] : mine) list.push_back({index, error});
  std::map<std::int64_t, std::string> all;
  const auto replace = nlohmann::json::error_handler_t::replace;
  for (const std::string& text : communicator.all_gather_text(list.dump(-1, ' ', false, replace))) {
    for (const auto& entry : nlohmann::json::parse(text)) all.emplace(entry[0], entry[1]);
  }
  return all;
}

}  // namespace lockstep::train
