// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::launcher {

/// The networks that two hosts have, each with the second one's address in it; `from` and `to` are their facts
/// (answers.h). Not those in which both have the same address.
std::vector<std::pair<std::string, std::string>> shared_networks(const nlohmann::ordered_json& from,
                                                                 const nlohmann::ordered_json& to);

/// Adds "networks" and "use" to an examination that has "hosts" and "ways" (hosts_examination.h), and what keeps ranks
/// from finding each other to `findings`.
void add_network_findings(nlohmann::ordered_json& examination, nlohmann::ordered_json& findings);

}  // namespace lockstep::launcher
