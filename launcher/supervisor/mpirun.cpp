// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/mpirun.h"

#include <unistd.h>

#include <cstdlib>

#include "comm/group/network_choice.h"
#include "launcher/hosts/host_list.h"
#include "launcher/supervisor/openmp_settings.h"
#include "runtime/base/cores.h"
#include "runtime/base/error.h"
#include "runtime/base/program_search.h"

namespace lockstep::launcher {

namespace fs = std::filesystem;

namespace {

constexpr const char* kInstall =
    "Install it (Debian: apt-get install openmpi-bin), start the ranks with torchrun --nproc-per-node, or train with "
    "one rank.";

/// Each place by itself, in the order in which the ranks take them: "a,a,b,b".
std::string one_by_one(const std::string& hosts) {
  std::string list;
  for (const HostPlaces& host : places_on(hosts)) {
    for (int i = 0; i < host.ranks; ++i) list += (list.empty() ? "" : ",") + host.name;
  }
  return list;
}

/// Half of the time that Open MPI takes to start goes into loading what one machine has no use for: network transports,
/// other launchers, and hwloc's plug-ins for displays and PCI devices. Nor must a batch system's allocation spread
/// ranks over other machines. From version 5 on, mpirun's own variables begin with PRTE_MCA_; it takes those of version
/// 4 for the ranks' and ignores them.
const std::map<std::string, std::string> kOneMachine{
    {"OMPI_MCA_ras", "^slurm,gridengine,tm,lsf"},
    {"OMPI_MCA_plm", "isolated"},
    {"PRTE_MCA_ras", "^slurm,gridengine,pbs,lsf"},
    {"PRTE_MCA_plm", "^slurm,pals,lsf"},
    {"OMPI_MCA_pml", "ob1"},
    {"OMPI_MCA_btl", "self,vader"},
    {"OMPI_MCA_osc", "sm"},
    // The others are tried out with files of /dev/shm, which outlive a rank that is killed meanwhile.
    {"OMPI_MCA_shmem", "mmap"},
    {"HWLOC_PLUGINS_BLACKLIST", "hwloc_gl.so,hwloc_opencl.so,hwloc_pci.so,hwloc_xml_libxml.so"},
};

/// Those of this program and of NCCL, which mpirun does not hand on to other machines by itself.
std::map<std::string, std::string> settings_of_the_user() {
  std::map<std::string, std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!text.starts_with("LOCKSTEP_") && !text.starts_with("NCCL_")) continue;
    const std::size_t end = text.find('=');
    result.emplace(text.substr(0, end), text.substr(end + 1));
  }
  return result;
}

}  // namespace

fs::path find_mpirun() {
  if (const auto found = find_program("mpirun")) return *found;
  throw EnvironmentError("there is no mpirun in PATH, which starts the ranks", kInstall);
}

ChildCommand mpirun_command(int ranks, const std::string& hosts, const std::vector<std::string>& rank_arguments,
                            std::map<std::string, std::string> variables) {
  ChildCommand command;
  command.arguments = {find_mpirun().string(), "-n", std::to_string(ranks), "--oversubscribe", "--bind-to", "none"};
  if (geteuid() == 0) command.arguments.push_back("--allow-run-as-root");
  if (hosts.empty()) {
    for (const auto& [name, value] : kOneMachine) {
      if (std::getenv(name.c_str()) == nullptr) command.environment[name] = value;
    }
  } else {
    // In another order mpirun would give its own host the first ranks.
    command.arguments.insert(command.arguments.end(), {"--map-by", "seq", "--host", one_by_one(hosts)});
    variables.merge(settings_of_the_user());
    if (const char* const wanted = std::getenv(comm::kInterfaceVariable)) {
      // Of mpirun and its daemons; each rank tells MPI itself. The second name is that of Open MPI 5.
      for (const char* name : {"OMPI_MCA_oob_tcp_if_include", "PRTE_MCA_prte_if_include"}) {
        command.environment[name] = wanted;
      }
    }
  }
  // A rank that is to end is not asked first: what it had to save is saved by then. Open MPI 5 asks in any case.
  variables.emplace("OMPI_MCA_odls_base_sigkill_timeout", "0");
  // Ranks of other hosts look themselves how many cores there are.
  variables.merge(hosts.empty() ? openmp_settings(usable_cores() / ranks) : openmp_settings_of_the_user());
  for (const auto& [name, value] : variables) {
    command.arguments.insert(command.arguments.end(), {"-x", name});
    command.environment[name] = value;
  }
  command.arguments.push_back(fs::read_symlink("/proc/self/exe").string());
  command.arguments.insert(command.arguments.end(), rank_arguments.begin(), rank_arguments.end());
  return command;
}

}  // namespace lockstep::launcher
