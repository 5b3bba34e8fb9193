// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/nn/module.h"

namespace lockstep::autograd {
struct Meta;
}

namespace lockstep::nn {

struct ArenaOptions {
  /// Dtype of the compute copies; float32: there are none.
  DType compute_dtype = DType::kFloat32;
  /// The model's parameters are the compute copies (O2, O3) instead of the float32 masters (O0, O1).
  bool reduced_parameters = false;
  /// The forward pass runs under autocast to the compute dtype. Default: where that is of 16 bits and the model's
  /// parameters are not.
  std::optional<bool> autocast = {};
  /// Dtype of what the forward pass gives. Default: float32 with reduced_parameters, else whatever comes out.
  std::optional<DType> output_dtype = {};
  /// With reduced_parameters: parameters of normalisations stay float32.
  bool keep_norm_float32 = true;
  /// False: the masters hold only what the compute dtype can represent, as if there were none (O3).
  bool master_weights = true;
  /// Where the model trains; its parameters and running statistics move there.
  Device device = kCpu;
};

/// Arena::size() of the arena that would hold these parameters.
std::int64_t arena_elements(const std::vector<Parameter>& parameters);

/// Bytes of the gradients of `elements` (Arena::size()) on a device: in the dtype of the wire, and where that is 16-bit
/// 4 more an element for a step of several backward passes, train.accumulate > 1, or GradScaler::unscale_().
std::size_t gradient_bytes(std::int64_t elements, DType wire, bool float32_too);

/// All parameters of a model in flat allocations: float32 masters, compute-dtype copies and gradients, all with the
/// same offsets, in the reverse order of registration, which is about the order in which backward finishes them.
/// Parameters become views of it, so a gradient bucket is a slice and nothing is ever copied into or out of one.
class Arena {
 public:
  /// A parameter's place: elements [begin, end). Starts are multiples of 256 bytes in every dtype; the padding stays
  /// zero.
  struct Slot {
    Parameter parameter;
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  /// Moves the model's parameters in; their values are kept. Gradients start in float32, in private memory.
  Arena(Module& root, const ArenaOptions& options);

  const ArenaOptions& options() const { return options_; }
  const std::vector<Slot>& slots() const { return slots_; }
  /// The number of elements of the arena, padding included.
  std::int64_t size() const { return size_; }
  /// The float32 masters, with every write to parameters up to now.
  const Tensor& masters() const;
  /// The compute copies, with every write to parameters up to now; undefined where compute_dtype is float32.
  const Tensor& copies() const;
  /// The step's gradients, where they lie now: in wire() or in float32_grads().
  const Tensor& grads() const { return grads_; }
  /// Where gradients are reduced over ranks, in the dtype of the wire. The gradients of one backward pass are born
  /// here.
  const Tensor& wire() const { return wire_; }
  /// Gradients in float32 with the same offsets, for what 16 bits would lose: sums of several backward passes, and
  /// unscaled gradients. wire() itself where that is float32. Else memory of its own, 4 bytes an element, that is taken
  /// when it is first asked for, and kept: ask before a step is captured.
  const Tensor& float32_grads();
  /// The master weights of one slot, in the parameter's shape. Where that is the parameter itself (O0, O1), writing
  /// here is writing there; under O2 and O3 call refresh_copies() after it.
  Tensor master(const Slot& slot) const;

  /// Makes `storage` (zeroed, at least size() elements) the wire, of this dtype; the gradients there are forgotten.
  void place_gradients(Storage storage, DType dtype);
  /// From now on the step's gradients lie in `grads`, which is wire() or float32_grads(): backward passes write there,
  /// parameters show them as grad(), the optimizer reads them. Moves no value.
  void hold(const Tensor& grads);
  /// Moves the gradients to float32_grads().
  void widen();
  /// Leaves the gradients that grad() has shown to those who still hold them, in memory of their own: the slots can be
  /// written again. zero_grad() does that; a step that is launched as a graph asks nobody, and who launches it calls
  /// this.
  void keep_shown_gradients() const;
  /// Forgets the gradients. The gradients of the next backward pass are born in wire().
  void zero_grad();
  /// Forgets the gradients of some slots, given by their numbers; the others stay where they are.
  void zero_grad(std::span<const std::size_t> slots);
  /// Whether the slot's compute copy is all there is of it: its master holds only what the compute dtype can represent.
  bool is_rounded(const Slot& slot) const;
  /// Writes zeros into the slots that hold nothing; they still count as empty.
  void zero_missing_grads() const;
  /// Whether gradients were reduced over ranks since zero_grad().
  bool reduced() const { return reduced_; }
  /// Flags of this rank's own gradients before they were reduced: float32 [slots], above 0 where one of the step's
  /// backward passes had an inf or a NaN. Undefined where nobody looked.
  const Tensor& local_flags() const { return local_flags_; }
  /// The gradients are those of all ranks now. `local_flags` as above; `has_gradient` as below, where the ranks agreed
  /// on it, else undefined: each knows.
  void note_reduction(const Tensor& local_flags, const Tensor& has_gradient = {});
  /// Whether each slot's parameter has a gradient in this step: float32 [slots] on the device, 1 or 0. It has one where
  /// a backward pass wrote it since zero_grad(), on any rank; one that requires no gradient has none.
  Tensor has_gradient() const;
  /// Writes has_gradient(), as far as this rank knows, into `flags`.
  void write_own_gradients(const Tensor& flags) const;
  /// The slot's gradient was unscaled: until zero_grad() backward passes into the arena are refused by those who ask.
  void note_unscaled(std::size_t slot);
  /// The autograd::ScaleMark of the slot's gradient: the loss scale that multiplies it.
  std::uint64_t scaler_of(std::size_t slot) const;
  /// Throws UsageError where a gradient was unscaled, which another backward pass would spoil.
  void require_scaled() const;
  /// Whether a backward pass wrote the slot's gradient since the last use_gradient() or zero_grad(). Where the ranks
  /// agreed on which parameters have one, any may, so that all ranks go on alike.
  bool has_new_gradient(std::size_t slot) const;
  /// Whether the slot's gradient is this rank's alone, though several train the model: a backward pass that was not
  /// reduced wrote it, and no reduced one came behind.
  bool has_unreduced_gradient(std::size_t slot) const;
  /// An optimizer has stepped with the slot's gradient.
  void use_gradient(std::size_t slot);
  /// Rounds the masters into the copies, and those that is_rounded() tells of themselves; after loading or broadcasting
  /// masters.
  void refresh_copies() const;
  /// Where a parameter was written (clipped, loaded, averaged) since its two dtypes were last alike, makes the master
  /// that of a 16-bit parameter, and the copy that of a float32 one. Whoever asks for masters() or copies() gets that
  /// anyway, and a float32 parameter's forward pass renews its copy itself; a step that is launched as a graph asks
  /// nobody.
  void take_over_writes() const;
  /// An optimizer has written the slot's master, and rounded it into the copy.
  void note_update(std::size_t slot) const;

  /// How many ranks train the model together: 1 unless DistributedDataParallel says otherwise.
  int ranks() const { return ranks_; }
  void set_ranks(int ranks) { ranks_ = ranks; }

  /// Accepts the pending batch-norm statistics of the whole model, or forgets them where *found_inf (on the device) is
  /// not 0; null: accepts. Called with the verdict by whoever gives it: GradScaler::step(), Optimizer::step().
  void commit_statistics(const float* found_inf = nullptr) const;
  const std::vector<std::pair<std::string, RunningStatistics*>>& statistics() const { return statistics_; }

 private:
  autograd::Meta& meta_of_slot(std::size_t slot) const;
  /// has_gradient() of one slot, as far as this rank knows.
  bool has_own_gradient(std::size_t slot) const;
  /// Grows with every gradient that the slot may have got.
  std::int64_t gradients_of(std::size_t slot) const;
  void forget_gradient(std::size_t slot);
  bool holds_nothing() const;
  /// Whether the model sees the compute copy instead of the master.
  bool is_reduced(const Parameter& parameter) const;
  /// The parameters' parts of a flat tensor, in their shapes.
  std::vector<Tensor> slots_of(const Tensor& flat) const;
  void take_over(const Slot& slot) const;
  /// The parameter was written, its other dtype with it.
  void note_written(const Slot& slot) const;

  ArenaOptions options_;
  std::vector<Slot> slots_;
  std::int64_t size_ = 0;
  Tensor masters_;
  Tensor copies_;
  Tensor grads_;
  Tensor wire_;
  Tensor float32_grads_;            ///< undefined until somebody asks
  std::vector<Tensor> wire_slots_;  ///< the parameters' parts of wire_, in their shapes
  std::vector<Tensor> float32_slots_;
  int ranks_ = 1;
  bool reduced_ = false;
  Tensor local_flags_;
  Tensor agreed_gradients_;         ///< has_gradient() where the ranks agreed on it
  Tensor every_gradient_;           ///< has_gradient() of steps in which every parameter has one
  std::int64_t agreements_ = 0;     ///< reductions in which the ranks agreed on which parameters have a gradient
  std::vector<std::int64_t> used_;  ///< by slot, gradients_of() at the last use_gradient()
  std::vector<std::int64_t> reduced_gradients_;  ///< by slot, how many of its gradients are those of all ranks
  std::vector<std::pair<std::string, RunningStatistics*>> statistics_;
};

}  // namespace lockstep::nn
