// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervisor/launch_options.h"

#include <cstdlib>

#include "comm/group/network_choice.h"
#include "comm/group/transport_choice.h"
#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::launcher {

const CLI::Validator& not_empty() {
  static const CLI::Validator kNotEmpty(
      [](const std::string& value) { return value.empty() ? std::string("has an empty value") : std::string(); }, "");
  return kNotEmpty;
}

CLI::Option* add_interface(CLI::App& command, std::string& interface) {
  // The ranks read the variable, on every host; an option of theirs would be one more that all commands hand on.
  return command
      .add_option("--interface", interface, "the network between ranks: an interface, as eth0, or 10.0.0.0/24")
      ->type_name("NAME|NET")
      ->check(not_empty())
      ->each([](const std::string& value) { setenv(comm::kInterfaceVariable, value.c_str(), 1); });
}

void LaunchOptions::add_to(CLI::App& command, bool restarts) {
  command.add_option("--nproc", nproc, "start this many ranks, here or on --hosts")->check(CLI::Range(1, 1 << 20));
  command.add_option("--hosts", hosts, "the hosts to start ranks on, each with a number of ranks")
      ->type_name("A:4,B:4")
      ->check(not_empty());
  add_interface(command, interface);
  command
      .add_option("--transport", transport,
                  "what carries data between --hosts, to the same bits; default: tcp, or mpi with RDMA")
      ->check(CLI::IsMember({"mpi", "tcp"}))
      ->each([](const std::string& value) { setenv(comm::kTransportVariable, value.c_str(), 1); });
  command.add_option("--device", device, "what to compute on")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "cpu", "cuda"}));
  command.add_flag("--verbose", verbose, "print mpirun's own words, too, where it cannot start the ranks");
  if (!restarts) return;
  command.add_option("--max-restarts", max_restarts, "start again up to this often when a rank is lost")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
}

void LaunchOptions::require_device() const {
  if (device != "cuda" || gpu::device_count() > 0) return;
  throw EnvironmentError("--device cuda: " + gpu::why_none(), "Use --device cpu; lockstep doctor says more.");
}

Device LaunchOptions::device_of(int local_rank) const {
  const int devices = device == "cpu" ? 0 : gpu::device_count();
  return devices == 0 ? kCpu : Device{DeviceType::kCuda, local_rank % devices};
}

}  // namespace lockstep::launcher
