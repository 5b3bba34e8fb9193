// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

namespace lockstep {

/// The bytes of host memory that this process may still take; nothing where there is no such limit or nobody knows.
struct MemoryRoom {
  std::optional<std::size_t> machine;        ///< MemAvailable
  std::optional<std::size_t> group;          ///< of its control groups, as a container's --memory
  std::optional<std::size_t> address_space;  ///< of ulimit -v and -d
};
MemoryRoom memory_room();
/// The least of these.
std::optional<std::size_t> least_of(const MemoryRoom& room);
/// The bytes of host memory that processes here can have at most: the machine's, its swap included, or what a control
/// group allows. Nothing where nobody knows.
std::optional<std::size_t> whole_memory();
/// "812 MiB are free on this machine, 3 MiB of its address space (ulimit -v)"
std::string str(const MemoryRoom& room);

/// The facts about host memory that errors give: the free memory, and how much this process holds and for what.
std::string memory_facts();

/// The room in the narrowest control group; see control_groups().
std::optional<std::size_t> room_in_groups(const std::string& groups, const std::filesystem::path& mount);

/// Whether so many bytes of address space can be had in one piece. True without a look where nothing limits them.
bool has_address_space(std::size_t bytes);

}  // namespace lockstep
