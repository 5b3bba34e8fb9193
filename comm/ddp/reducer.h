// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/ddp/bucket_plan.h"
#include "comm/ddp/communication_hook.h"
#include "comm/group/communicator.h"
#include "comm/group/reduction_plan.h"
#include "runtime/kernels/arena.h"
#include "runtime/nn/arena.h"
#include "runtime/tensor/stream.h"

namespace lockstep::comm {

/// The seam between autograd and communication: gradient hooks fill buckets, full buckets leave in the agreed order on
/// streams of their own while backward goes on, and the end of the backward pass waits for them.
///
/// The gradients of a single backward pass are born in the dtype of the wire. Those of several, the first of which is
/// not reduced or meets gradients of an earlier one, add up in float32 (nn::Arena::float32_grads()); a full bucket is
/// then rounded to the wire as it leaves. A lone rank has no wire and keeps the float32 sums.
///
/// Several reducers may share a pass: it finishes them in the order of their construction, which is collective, so that
/// all ranks wait for the same one. Where a rank's parameters lie in memory or in its graph does not matter.
class Reducer {
 public:
  Reducer(std::shared_ptr<nn::Arena> arena, std::shared_ptr<Communicator> communicator, const DdpOptions& options);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  /// Whether the gradients of the next backward passes are reduced; false while accumulating.
  void set_enabled(bool enabled) { enabled_ = enabled; }
  bool enabled() const { return enabled_; }

  /// The factor of the gradients of the next backward passes, in float32, before they are summed; 1 by
  /// default. Share::gradient_factor.
  void set_factor(float factor) { factor_ = factor; }

  const std::vector<Bucket>& buckets() const { return buckets_; }

  /// Has `hook` reduce the buckets; null: all_reduce() does so again. Throws UsageError within a backward pass.
  void set_communication_hook(CommunicationHook hook);

  /// Called when a backward pass that reaches a parameter begins, before it writes a gradient. May throw.
  void set_on_begin(std::function<void()> callback) { on_begin_ = std::move(callback); }
  /// Called with the slot's number when a parameter's gradient of a backward pass is complete on this rank, before it
  /// can leave. For observers, such as fault injection.
  void set_on_gradient(std::function<void(std::size_t slot)> callback) { on_gradient_ = std::move(callback); }

 private:
  /// Buckets that are reduced one after the other, in an order of their own.
  struct Lane {
    std::shared_ptr<Communicator> communicator;
    Stream stream;
    Tensor widened;  ///< float32, as long as the longest bucket; undefined where buckets are reduced in place
  };

  bool has_gradient(std::size_t slot) const;
  /// A parameter that does not require a gradient, frozen, gets none.
  bool expects_gradient(std::size_t slot) const;
  Tensor flags() const;
  bool alone() const { return communicator_->size() == 1; }
  /// Fills a slot that holds nothing with zeros: this rank's contribution where others have a gradient.
  void contribute_zero(std::size_t slot);
  void begin_pass();
  void begin_reduction();
  /// Divides the sum that earlier reductions of the step have left, so that the next reduction restores it.
  void take_back_reduced();
  /// Throws UsageError where the gradients that wait for a reduction have a factor other than `factor_`.
  void require_one_factor() const;
  void gradient_ready(std::size_t slot);
  void launch_full_buckets();
  void launch(std::size_t bucket);
  Lane make_lane(int number, const DdpOptions& options) const;
  /// Where the communicator would pass over each bucket to multiply it, load() does that, which passes over it anyway.
  std::optional<ReductionPlan> plan() const;
  /// Replaces `gradients`, those of the bucket, by their mean, or sum, over the ranks, on the lane's stream.
  void reduce(std::size_t bucket, const Tensor& gradients, const Lane& lane) const;
  void all_reduce(const Tensor& gradients, const Lane& lane) const;
  /// Looks at this rank's own gradients of a bucket and sees that they lie in the wire.
  void load(std::size_t bucket);
  void finish_pass();
  void require_all_gradients();

  std::shared_ptr<nn::Arena> arena_;
  std::shared_ptr<Communicator> communicator_;
  std::uint64_t order_;  ///< among the reducers of one pass
  bool average_;
  float predivide_;
  float factor_ = 1.0f;
  bool find_unused_;
  bool delay_;
  bool enabled_ = true;
  std::vector<Bucket> buckets_;
  using ArenaSegment = kernels::ArenaSegment;
  std::vector<std::vector<ArenaSegment>> segments_;  ///< the parameters of each bucket
  std::vector<Lane> lanes_;                          ///< bucket b takes number b modulo their count
  CommunicationHook communication_hook_;
  std::function<void()> on_begin_;
  std::function<void(std::size_t)> on_gradient_;

  // The state of the current pass.
  std::weak_ptr<void> pass_;   ///< lives as long as the pass
  bool reducing_ = true;       ///< whether its gradients are reduced
  std::vector<int> missing_;   ///< slots that each bucket still waits for
  std::size_t next_ = 0;       ///< the bucket that leaves next
  std::vector<Event> events_;  ///< by bucket, reached when it is reduced
  bool another_ = false;       ///< whether the step has had one that was reduced
  bool taken_back_ = false;    ///< whether that is a part of the next one by now
  /// The factor of the gradients that wait for a reduction; nothing where none wait.
  std::optional<float> pending_factor_;

  Tensor used_;  ///< float32 [slots], 1 where any rank has a gradient; undefined where every rank must have every one
  std::optional<ReductionPlan> plan_;  ///< of this pass
  Tensor plan_factor_;                 ///< plan_'s, float32 [1] on the device; undefined where there is none
  // Where this rank's own gradients were bad, float32 [slots]; undefined for a lone rank, whose own are the reduced
  // ones.
  Tensor local_flags_;  ///< in any pass of the step
  Tensor found_;        ///< in this pass of several, or what earlier ones had left
  Tensor clean_;        ///< 1 where the earlier passes' sum is finite
};

}  // namespace lockstep::comm
