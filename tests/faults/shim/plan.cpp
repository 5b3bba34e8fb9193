// SPDX-License-Identifier: Apache-2.0
#include "tests/faults/shim/plan.h"

#include <cstdlib>

#include "tests/faults/shim/watched_files.h"

namespace lockstep::faults {

namespace {

std::string variable(const char* name, const char* otherwise = "") {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

std::string role_of_process() {
  std::string role = "main";
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK"}) {
    if (const std::string rank = variable(name); !rank.empty()) role = "rank" + rank;
  }
  const std::string restart = variable("LOCKSTEP_RESTART_COUNT");
  return restart.empty() || restart == "0" ? role : role + "+" + restart;
}

}  // namespace

Plan::Plan()
    : role_(role_of_process()),
      point_(variable("LOCKSTEP_FAULTS_POINT")),
      fault_(variable("LOCKSTEP_FAULTS_FAULT")),
      lasts_(variable("LOCKSTEP_FAULTS_LASTS", "1")) {
  const std::size_t blank = point_.rfind(' ');
  if (blank == std::string::npos) return;
  number_ = std::atoi(point_.c_str() + blank);
  point_.resize(blank);
}

bool Plan::is_hit(const Call& call) {
  const int times = std::atoi(lasts_.c_str());
  const bool like = role_ + " " + call.operation + " " + stable_name(call.path) == point_;
  if (like && call.number >= number_ && call.number < number_ + (times > 0 ? times : 1)) begun_ = true;
  if (!begun_ || times > 0) return like && call.number >= number_ && call.number < number_ + times;
  return lasts_ == "all" || call.grows;
}

Fault Plan::next(Call& call) {
  const std::lock_guard lock(mutex_);
  call.number = ++counts_[call.operation + " " + stable_name(call.path)];
  if (point_.empty() || !is_hit(call)) return {};
  if (fault_ == "kill") return {.kills = true};
  if (fault_ == "torn") return {.kills = true, .halves = true};
  if (fault_ == "short") return {.halves = true};
  if (fault_ == "hang") return {.hangs = true};
  return {.error = std::atoi(fault_.c_str())};
}

}  // namespace lockstep::faults
