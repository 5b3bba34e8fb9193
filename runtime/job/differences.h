// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace lockstep::job {

class Job;

/// A value that two jobs give differently.
struct Difference {
  std::string path;    ///< "train.steps"
  std::string before;  ///< "600"; "(unset)" where that job has none
  std::string after;
};

/// Every value that the job gives, by its path; an empty message is "{}".
std::map<std::string, std::string> values_of(const Job& job);

/// All values that differ, by path; empty for equal jobs.
std::vector<Difference> differences(const Job& before, const Job& after);

}  // namespace lockstep::job
