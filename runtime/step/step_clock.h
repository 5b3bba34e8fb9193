// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <any>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/autograd/record_observer.h"
#include "runtime/ops/operation_work.h"
#include "runtime/step/step_observer.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/gpu.h"
#include "runtime/tensor/stream.h"
#include "runtime/tensor/trace_range.h"

namespace lockstep::nn {
class Module;
}

namespace lockstep::step {

enum class StepPart : std::uint8_t {
  kData,           ///< waits for the batch
  kForward,        ///< with the loss
  kBackward,       ///< with what the reduction takes of the calling thread
  kCommunication,  ///< is in a collective, or waits for one, and computes nothing meanwhile
  kUpdate,         ///< the inf check, unscaling, clipping, the optimizer's step
  kRest,
};
inline constexpr std::size_t kStepParts = 6;
std::string_view name_of(StepPart part);
/// The part that takes the time of a phase in which nothing else is at work.
StepPart part_of(Phase phase);

/// The times of one step, of which every nanosecond is in one part.
struct StepTimes {
  std::array<std::chrono::nanoseconds, kStepParts> parts{};

  std::chrono::nanoseconds total() const;
};

/// The times that all steps so far took in one operation of one layer.
struct OperationTimes {
  struct Pass {
    std::int64_t calls = 0;
    std::chrono::nanoseconds time{0};
    ops::OperationWork work;
    const char* implementation = nullptr;  ///< the library's name for its primitive; null: loops of ours
  };

  /// As it is recorded: "linear"; or that of a TraceRange, whose time is what no operation within it took.
  std::string_view name;
  const nn::Module* layer = nullptr;  ///< whose forward pass ran it; null outside any
  DType dtype = DType::kFloat32;      ///< of its first result
  bool is_operation = true;           ///< otherwise a range
  bool again = false;                 ///< the forward pass of a checkpoint's backward pass: time of that
  Pass forward;                       ///< of a range: all of its time
  Pass backward;
};

/// An operation's pass, a range or a phase that has ended.
struct ClockedEvent {
  std::string_view name;
  std::string_view category;  ///< "operation", "phase", or that of a range: "work", "data", "communication", "device"
  bool is_backward = false;
  std::chrono::nanoseconds begin{0};
  std::chrono::nanoseconds end{0};
};

/// Takes the time of a training step's parts and operations on the calling thread, between begin() and end(): one look
/// at the clock wherever an operation, a range or a phase ends, so that each nanosecond counts once. An operation's
/// forward pass lasts from the end of the one before to where it is recorded; what is recorded outside Phase::kForward
/// counts only where a checkpoint runs its block again. Outside begin() and end() it costs nothing and looks at no
/// clock.
///
/// On a GPU each of these places is a moment of the stream that the step began on. Its time is known when the step has
/// ended: nothing waits meanwhile, and `sink` is told of everything then. Time in which the device waits for the host
/// is the next operation's. Its steps are no graphs.
class StepClock final : public StepObserver, private autograd::RecordObserver, private RangeObserver {
 public:
  using Now = std::function<std::chrono::nanoseconds()>;

  using Sink = std::function<void(const ClockedEvent& event)>;

  /// `now`: the clock, counted from any moment; on a GPU it is looked at when a step begins, and the device's time goes
  /// on from there. `sink` is told of everything that ends, if there is one.
  explicit StepClock(
      Device device = kCpu, Now now = [] { return std::chrono::steady_clock::now().time_since_epoch(); },
      Sink sink = nullptr);
  ~StepClock() override;
  StepClock(const StepClock&) = delete;
  StepClock& operator=(const StepClock&) = delete;

  /// A step begins, before its data are asked for; waits for a GPU. Replaces the thread's record and range observers.
  void begin();
  /// The step has ended. Waits for a GPU, and throws what the device or a look at it has met.
  StepTimes end();
  bool running() const { return running_; }

  /// Of all steps between begin() and end().
  const std::deque<OperationTimes>& operations() const { return operations_; }

  bool needs_phases(std::uint64_t) const override { return running_; }
  void phase_begins(Phase phase, std::uint64_t step, std::uint32_t micro_batch) override;
  void step_ends(std::uint64_t step) override;

 private:
  using Pass = OperationTimes::Pass;
  struct Key {
    const char* name;
    const nn::Module* layer;
    DType dtype;
    bool again;

    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  /// A range, or the visit of a backward pass to an operation.
  struct Open {
    Pass* pass;
    StepPart part;
    bool is_visit;
    std::string_view name;
    std::string_view category;  ///< ClockedEvent's
    std::chrono::nanoseconds begin;
  };
  /// What is to be known of an operation when it is recorded.
  struct Gathered {
    std::string_view name;
    const nn::Module* layer;
    DType dtype;
    ops::OperationWork forward;
    ops::OperationWork backward;
    const char* implementation;
  };
  struct Recorded {
    OperationTimes* operation = nullptr;
    Pass* forward_pass = nullptr;  ///< that its forward pass is counted in: the operation's, or that of its repetition
    ops::OperationWork forward;
    ops::OperationWork backward;
  };

  void recorded(std::string_view name, const std::vector<Tensor>& results, const std::vector<Tensor>& inputs) override;
  void noted(const Tensor& result, const std::any& options, const std::vector<Tensor>& others) override;
  void placed(const autograd::Node& node) override;
  void backward_begins(const autograd::Node& node) override;
  void backward_ends(const autograd::Node& node) override;
  void range_begins(const char* name, RangeKind kind) override;
  void range_ends() override;

  /// Calls account(), which may call lap(): at once, or, on a GPU, when the step has ended and the time of this place
  /// is known. Then it must hold what it is to know of now. Destructors come here: what is thrown on a GPU is kept for
  /// end().
  template <class Account>
  void look(Account account);
  /// The same for what does not call lap().
  template <class Account>
  void after_look(Account account);
  /// Calls what was put off.
  void catch_up();
  void detach();
  /// The time since the last look at the clock, which goes to the current part.
  std::chrono::nanoseconds lap();
  /// `gather`: a function that gives Gathered, called where the operation counts. `recording`: gradients are.
  template <class Gather>
  void count_record(bool recording, Gather gather);
  void count_causal();
  void count_visit(const autograd::Node* node, std::string_view name);
  void count_range(const char* name, RangeKind kind);
  /// Gives the time up to now to what is open.
  void close_lap();
  /// The time that no operation has taken belongs to the innermost range, or to the optimizer.
  void settle_loose();
  /// `counts_apart`: what is open keeps the time since its last operation; otherwise that is the next operation's.
  void open(const Open& opened, bool counts_apart);
  void close_innermost();
  void enter(StepPart phase);
  void tell(const ClockedEvent& event) const {
    if (sink_) sink_(event);
  }
  StepPart part() const { return open_.empty() ? phase_ : open_.back().part; }
  bool in_visit() const { return !open_.empty() && open_.back().is_visit; }
  /// In a range that is neither communication nor a wait for data.
  bool in_work() const { return !open_.empty() && !open_.back().is_visit && open_.back().part == phase_; }
  OperationTimes& at(std::string_view name, const nn::Module* layer, DType dtype, bool again);
  /// A range, or what of a step lies outside any.
  Pass& range(const char* name);

  Device device_;
  Now now_;
  Sink sink_;
  bool running_ = false;
  struct Look {
    gpu::Moment moment;
    std::vector<std::function<void()>> accounts;
  };
  // Of a GPU's step:
  std::optional<Stream> stream_;
  std::optional<gpu::Moment> begin_;
  std::deque<Look> looks_;
  std::exception_ptr failure_;                            ///< of a look
  std::optional<std::chrono::nanoseconds> time_of_look_;  ///< of the one whose accounts are called
  autograd::RecordObserver* outer_records_ = nullptr;
  RangeObserver* outer_ranges_ = nullptr;
  std::chrono::nanoseconds last_{0};
  /// Of a forward pass: since the last operation, without the ranges meanwhile.
  std::chrono::nanoseconds loose_{0};
  std::chrono::nanoseconds loose_begin_{0};
  StepPart phase_ = StepPart::kRest;
  std::chrono::nanoseconds phase_begin_{0};
  StepTimes times_;
  std::vector<Open> open_;
  std::deque<OperationTimes> operations_;
  std::unordered_map<Key, OperationTimes*, Hash> by_key_;
  std::unordered_map<const autograd::Node*, Recorded> placed_;  ///< of this step's graph
  Recorded latest_;                                             ///< without an operation: one that is left out
  Recorded* latest_placed_ = nullptr;                           ///< null: the latest has no place in the graph
};

}  // namespace lockstep::step
