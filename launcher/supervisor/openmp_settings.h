// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

namespace lockstep::launcher {

/// The OpenMP environment variables for a rank that has so many cores to itself: one thread a core, and a waiting
/// thread sleeps soon, so that on a busy machine it leaves its core to the thread that it waits for. What the user has
/// set stays.
std::map<std::string, std::string> openmp_settings(int cores);

/// Those of them that the user has set.
std::map<std::string, std::string> openmp_settings_of_the_user();

/// Makes openmp_settings() those of this process. OpenMP reads them when its library is loaded, before main(), so where
/// one is missing the program starts anew in the same process: call this before anything that must not be done twice.
void settle_openmp(int cores);

}  // namespace lockstep::launcher
