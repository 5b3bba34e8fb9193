// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/step_memory.h"

#include <algorithm>

#include "runtime/tensor/memory_counters.h"

namespace lockstep::train {

namespace {

constexpr const char* kCheckpoints = "checkpoint_activations";

std::vector<StepMemory::Share> shares_of(const MemoryCounters& counters) {
  std::vector<StepMemory::Share> shares;
  for (std::size_t p = 0; p < kMemoryPurposes; ++p) {
    const auto purpose = static_cast<MemoryPurpose>(p);
    if (const std::size_t peak = counters.use(purpose).peak; peak > 0) shares.push_back({purpose, peak});
  }
  std::ranges::stable_sort(shares, std::ranges::greater(), &StepMemory::Share::bytes);
  return shares;
}

}  // namespace

MemoryWatch::MemoryWatch(Device device) : device_(device) { reset_peak(device_); }

void MemoryWatch::add(const step::ClockedEvent& event) {
  const MemoryCounters& counters = MemoryCounters::of(device_);
  const std::size_t peak = counters.total().peak;
  of_phase_ = std::max(of_phase_, peak);
  if (peak > memory_.peak) {
    memory_.peak = peak;
    memory_.operation = std::string(event.name) + (event.is_backward ? " backward" : "");
    memory_.shares = shares_of(counters);
  }
  reset_peak(device_);
  if (event.category != "phase") return;
  for (std::size_t p = 0; p < step::kStepParts; ++p) {
    if (event.name != step::name_of(static_cast<step::StepPart>(p))) continue;
    memory_.parts[p] = std::max(memory_.parts[p], of_phase_);
  }
  of_phase_ = 0;
}

std::vector<SmallerJob> smaller_jobs(const job::Job& job, int ranks) {
  std::vector<SmallerJob> smaller;
  const auto half = job.data().global_batch() / 2;
  if (half >= job.train().accumulate() * static_cast<std::uint32_t>(ranks)) {
    smaller.push_back({"data.global_batch=" + std::to_string(half), job});
    smaller.back().job.mutable_data()->set_global_batch(half);
  }
  const google::protobuf::Message& kinds = job.model();
  const auto* const kind =
      kinds.GetReflection()->GetOneofFieldDescriptor(kinds, kinds.GetDescriptor()->FindOneofByName("kind"));
  const auto* const field = kind == nullptr ? nullptr : kind->message_type()->FindFieldByName(kCheckpoints);
  if (field == nullptr) return smaller;
  SmallerJob changed{"model." + kind->name() + "." + kCheckpoints + "=true", job};
  google::protobuf::Message* const model = kinds.GetReflection()->MutableMessage(changed.job.mutable_model(), kind);
  if (model->GetReflection()->GetBool(*model, field)) return smaller;
  model->GetReflection()->SetBool(model, field, true);
  smaller.push_back(std::move(changed));
  return smaller;
}

}  // namespace lockstep::train
