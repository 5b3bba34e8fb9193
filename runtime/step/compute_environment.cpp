// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/compute_environment.h"

#include <google/protobuf/util/json_util.h>
#include <lockstep/version.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "comm/group/rank_names.h"
#include "comm/group/seating.h"
#include "comm/group/versions.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/cpu/threads.h"
#include "runtime/kernels/plan_cache/plan_cache.h"
#include "runtime/kernels/versions.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::step {

using checkpoint::ComputeEnvironment;
using google::protobuf::FieldDescriptor;

namespace {

/// The processor's name, as Linux gives it on x86; on aarch64 the numbers of its maker and of its cores' kind, which
/// are all that Linux gives: "0x41 0xd40".
std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string implementer;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) return value;
    if (line.starts_with("CPU implementer")) implementer = value;
    if (line.starts_with("CPU part")) return implementer + " " + value;
  }
  return "unknown";
}

std::string text_of(const ComputeEnvironment& environment, const FieldDescriptor& field) {
  const google::protobuf::Reflection& values = *ComputeEnvironment::GetReflection();
  if (!values.HasField(environment, &field)) return field.type() == FieldDescriptor::TYPE_BOOL ? "off" : "none";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(values.GetUInt32(environment, &field));
    case FieldDescriptor::CPPTYPE_BOOL:
      return "on";
    default:
      return values.GetString(environment, &field);
  }
}

/// Calls found(name, a's value, b's value) for each field in which they differ.
template <class Found>
void for_each_difference(const ComputeEnvironment& a, const ComputeEnvironment& b, Found found) {
  const google::protobuf::Descriptor& fields = *ComputeEnvironment::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    const FieldDescriptor& field = *fields.field(i);
    const std::string before = text_of(a, field);
    const std::string now = text_of(b, field);
    if (before == now) continue;
    std::string name = field.name();
    std::ranges::replace(name, '_', ' ');
    found(name, before, now);
    // All the others follow from it.
    if (field.number() == ComputeEnvironment::kDeviceFieldNumber) return;
  }
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

}  // namespace

ComputeEnvironment compute_environment(Device device) {
  ComputeEnvironment environment;
  environment.set_lockstep(kVersion);
  environment.set_compiler(__VERSION__);
  if (device == kCpu) {
    environment.set_device("cpu");
    environment.set_processor(processor());
    environment.set_instruction_set(std::string(kernels::cpu::name_of(kernels::cpu::isa())));
    environment.set_onednn(kernels::onednn_version() + " " + kernels::onednn_isa());
    environment.set_threads(static_cast<std::uint32_t>(kernels::cpu::threads()));
  } else {
    environment.set_device(gpu::describe(device).name);
    environment.set_cudnn(kernels::cudnn_version());
    environment.set_cublas(kernels::cublas_version());
    environment.set_nccl(comm::nccl_version());
    environment.set_autotune(kernels::plan_settings().autotune);
  }
  return environment;
}

ComputeEnvironment environment_of_run(comm::Communicator& communicator, Device device) {
  const ComputeEnvironment own = compute_environment(device);
  const std::string machine = comm::Seat::of_this_process().machine;
  std::vector<ComputeEnvironment> ranks;
  std::set<std::string> machines;
  for (const std::string& text : communicator.all_gather_text(machine + '\n' + own.SerializeAsString())) {
    const std::size_t end = text.find('\n');
    machines.insert(text.substr(0, end));
    ranks.emplace_back().ParseFromString(text.substr(end + 1));
  }
  require_one_rounding(ranks);
  if (const auto lines = disagreements(ranks); !lines.empty() && communicator.rank() == 0) {
    spdlog::warn("the ranks compute differently, so the bits depend on which rank runs where: {}", joined(lines));
  }
  ranks.front().set_machines(static_cast<std::uint32_t>(machines.size()));
  return ranks.front();
}

std::vector<std::string> differences(const ComputeEnvironment& before, const ComputeEnvironment& now) {
  std::vector<std::string> lines;
  for_each_difference(before, now, [&](const std::string& name, const std::string& a, const std::string& b) {
    lines.push_back(name + " " + a + " -> " + b);
  });
  return lines;
}

void require_one_rounding(const std::vector<ComputeEnvironment>& ranks) {
  // Every rank runs the optimizer's step itself. The result depends on which multiplications and additions the compiler
  // fuses: GCC the same ones within a family ("avx2" and "avx512"; "neon" and "neon_bf16"), others between families.
  // Clang fuses others in each instruction set.
  const auto family = [](const ComputeEnvironment& rank) {
    constexpr std::size_t kLetters = 3;
    const bool by_clang = rank.compiler().find("Clang") != std::string::npos;
    return by_clang ? rank.instruction_set() : rank.instruction_set().substr(0, kLetters);
  };
  std::map<std::string, std::vector<int>> families;
  std::map<std::string, std::vector<int>> instruction_sets;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    families[family(ranks[r])].push_back(static_cast<int>(r));
    instruction_sets[ranks[r].instruction_set()].push_back(static_cast<int>(r));
  }
  if (families.size() <= 1) return;
  std::vector<std::string> lines;
  for (const auto& [name, who] : instruction_sets) lines.push_back(name + " on " + comm::rank_names(who));
  throw PeerError(
      "the weights of the ranks would drift apart, because their instruction sets round differently: " + joined(lines),
      "Set LOCKSTEP_CPU_ISA=" + std::string(kernels::cpu::name_of(kernels::cpu::Isa::kBaseline)) +
          " for every rank, or leave those machines out.");
}

std::vector<std::string> disagreements(const std::vector<ComputeEnvironment>& ranks) {
  // Many ranks may differ from rank 0 in one way: one line says it.
  std::map<std::string, std::vector<int>> differing;
  for (std::size_t r = 1; r < ranks.size(); ++r) {
    const auto note = [&](const std::string& name, const std::string& first, const std::string& other) {
      differing[name + " " + first + " on rank 0, " + other + " on "].push_back(static_cast<int>(r));
    };
    for_each_difference(ranks[0], ranks[r], note);
  }
  std::vector<std::string> lines;
  for (const auto& [line, who] : differing) lines.push_back(line + comm::rank_names(who));
  return lines;
}

std::string resume_warning(const checkpoint::TrainingState& saved, const ComputeEnvironment& now, int ranks) {
  std::vector<std::string> changes;
  const auto before = static_cast<int>(saved.world_size());
  if (before != ranks) changes.push_back("ranks " + std::to_string(before) + " -> " + std::to_string(ranks));
  // A checkpoint of a version that did not record it says nothing.
  if (saved.has_environment()) {
    for (const std::string& line : differences(saved.environment(), now)) changes.push_back(line);
  }
  if (changes.empty()) return {};
  return "the bits may differ from those of an uninterrupted run: " + joined(changes);
}

std::string to_json(const ComputeEnvironment& environment) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(environment, &text, options);
  return status.ok() ? text : "{}";
}

}  // namespace lockstep::step
