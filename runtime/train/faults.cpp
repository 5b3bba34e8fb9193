// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/faults.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <limits>
#include <thread>

#include "runtime/autograd/meta.h"
#include "runtime/base/error.h"
#include "runtime/job/fault_point.h"
#include "runtime/kernels/assign.h"
#include "runtime/ops/elementwise.h"
#include "runtime/train/record/restarts.h"

namespace lockstep::train {

namespace {

const job::FaultPoint& required_point_of(const job::Fault& fault) {
  const job::FaultPoint* const point = job::point_of(fault);
  if (point != nullptr) return *point;
  throw UsageError("fault: none is named", "Name one of overflow, nan, kill, stop, delay, bit_flip.");
}

/// "fault[1].kill"
std::string path_of(const job::Fault& fault, int index) {
  const auto* kind = job::Fault::descriptor()->FindOneofByName("kind");
  return "fault[" + std::to_string(index) + "]." + fault.GetReflection()->GetOneofFieldDescriptor(fault, kind)->name();
}

/// The slot of the named parameter; of the model's first one where none is named.
std::size_t slot_of(const nn::Arena& arena, const std::string& name) {
  const auto& slots = arena.slots();
  if (name.empty()) return slots.size() - 1;  // the arena's order is the reverse of the model's
  const auto found = std::ranges::find_if(slots, [&](const auto& slot) { return slot.parameter.name == name; });
  return static_cast<std::size_t>(found - slots.begin());
}

}  // namespace

void require_possible(const job::Fault& fault, int index, const std::vector<std::string>& parameters, int world_size) {
  const job::FaultPoint& point = required_point_of(fault);
  if (!point.parameter().empty() && std::ranges::find(parameters, point.parameter()) == parameters.end()) {
    std::string names;
    for (const std::string& name : parameters) names += (names.empty() ? "" : ", ") + name;
    throw FieldError(path_of(fault, index) + ".parameter", "the model has no parameter '" + point.parameter() + "'",
                     "It has " + names + ".");
  }
  if (static_cast<int>(point.rank()) >= world_size) {
    throw FieldError(path_of(fault, index) + ".rank",
                     "there is no rank " + std::to_string(point.rank()) + " among " + std::to_string(world_size),
                     "Ranks count from 0; --nproc says how many there are.");
  }
}

Faults::Faults(const job::Job& job, int rank, int world_size, const nn::Arena& arena)
    : arena_(arena), last_micro_batch_(job.train().accumulate() - 1) {
  std::vector<std::string> parameters;
  for (const nn::Arena::Slot& slot : arena.slots()) parameters.push_back(slot.parameter.name);
  for (int i = 0; i < job.fault_size(); ++i) {
    const job::Fault& fault = job.fault(i);
    const job::FaultPoint& point = required_point_of(fault);
    require_possible(fault, i, parameters, world_size);
    if (restart_count() > 0) continue;
    steps_.push_back(point.step());
    if (static_cast<int>(point.rank()) == rank) {
      planned_.push_back({fault.kind_case(), point, slot_of(arena, point.parameter())});
    }
  }
}

bool Faults::needs_phases(std::uint64_t step) const { return std::ranges::find(steps_, step) != steps_.end(); }

void Faults::enter(std::uint64_t step, std::uint32_t micro_batch) {
  step_ = step;
  micro_batch_ = micro_batch;
}

void Faults::phase_begins(step::Phase phase, std::uint64_t step, std::uint32_t micro_batch) {
  enter(step, micro_batch);
  if (phase == step::Phase::kForward) at(job::FORWARD);
}

bool Faults::now(const Planned& fault) const {
  const std::uint32_t micro_batch = fault.point.has_micro_batch() ? fault.point.micro_batch() : last_micro_batch_;
  return fault.point.step() == step_ && micro_batch == micro_batch_;
}

void Faults::at(job::Phase phase) const {
  for (const Planned& fault : planned_) {
    // A fault before the first step, or after a step, belongs to no micro-batch.
    const bool here = phase == job::INIT || (phase == job::SAVE ? fault.point.step() == step_ : now(fault));
    if (fault.point.phase() != phase || !here) continue;
    if (fault.kind == job::Fault::kKill) std::raise(SIGKILL);
    if (fault.kind == job::Fault::kStop) std::raise(SIGSTOP);
    if (fault.kind == job::Fault::kDelay) {
      std::this_thread::sleep_for(std::chrono::milliseconds(fault.point.milliseconds()));
    }
  }
}

void Faults::poison(const Tensor& gradient, float value) {
  kernels::fill(gradient.reshaped({gradient.numel()}).rows(0, 1), static_cast<double>(value));
}

void Faults::gradient_ready(std::size_t slot) {
  if (slot == 0) at(job::BACKWARD);
  // The last gradient: buckets before its own are on their way.
  if (slot + 1 == arena_.slots().size()) at(job::ALL_REDUCE);
  for (const Planned& fault : planned_) {
    if (fault.slot != slot || !now(fault) || fault.point.phase() == job::LOSS) continue;
    const Tensor& gradient = autograd::meta_of(arena_.slots()[slot].parameter.tensor).slot;
    if (fault.kind == job::Fault::kOverflow) poison(gradient, std::numeric_limits<float>::infinity());
    if (fault.kind == job::Fault::kNan) poison(gradient, std::numeric_limits<float>::quiet_NaN());
  }
}

Tensor Faults::in_loss(const Tensor& loss) const {
  const bool bad = std::ranges::any_of(planned_, [this](const Planned& fault) {
    return fault.kind == job::Fault::kNan && fault.point.phase() == job::LOSS && now(fault);
  });
  return bad ? ops::scale(loss, std::numeric_limits<double>::quiet_NaN()) : loss;
}

void Faults::step_ends(std::uint64_t step) {
  for (const Planned& fault : planned_) {
    if (fault.kind != job::Fault::kBitFlip || fault.point.step() != step) continue;
    const Tensor master = arena_.master(arena_.slots()[fault.slot]);
    const Tensor flipped = Tensor::empty(master.shape(), master.dtype());
    flipped.copy_from(master.to(kCpu));
    static_cast<unsigned char*>(flipped.data())[0] ^= 1u;
    master.copy_from(flipped);
  }
}

}  // namespace lockstep::train
