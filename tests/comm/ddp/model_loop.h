// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "comm/ddp/digest.h"
#include "runtime/data/batch.h"
#include "runtime/data/dataset.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/step_context.h"
#include "runtime/ops/losses.h"
#include "tests/comm/ddp/ddp_fixture.h"

namespace lockstep::comm {

/// What all ranks together learn in a step.
struct Lesson {
  Tensor input;
  Tensor labels;                      ///< int64
  std::int64_t targets_a_sample = 1;  ///< that count
};

/// A model of model_zoo in training on all ranks, or alone.
struct ModelLoop {
  ModelLoop(const model_zoo::ModelOptions& options, const model_zoo::ModelInput& input, bool joined,
            const amp::AmpOptions& amp = {})
      : model(model_zoo::build(options, input, 7)) {
    // An epsilon of the gradients' size: Adam would blow the rounding of the smallest up to a whole step.
    optimizer = with_adamw({.lr = 0.01, .epsilon = 0.01, .weight_decay = 0.1}).of(model->parameters());
    amp::initialize(*model, *optimizer, amp, rank_device());
    if (joined) ddp.emplace(*model, world(), DdpOptions{.wire_dtype = DType::kFloat32});
  }

  void step(const Range& share, std::uint64_t number, const Lesson& lesson) {
    const std::int64_t samples = lesson.input.size(0);
    const auto mine = [&](const Tensor& all) { return all.rows(share.begin, share.end).to(rank_device()); };
    const data::Batch batch{.input = mine(lesson.input),
                            .target = mine(lesson.labels),
                            .step = number,
                            .first_sample = share.begin,
                            .step_samples = samples};
    const auto alone = [&] {
      const nn::StepContext context(number, 0);
      return output_of_whole(nn::forward(*model, batch.input), samples);
    };
    const ShareOutput y = ddp ? ddp->forward(batch) : alone();
    optimizer->zero_grad();
    ops::cross_entropy(y, batch.target,
                       {.divisor = y.loss_divisor() * static_cast<double>(lesson.targets_a_sample),
                        .ignore_index = data::kIgnoredLabel})
        .backward();
    optimizer->step();
  }

  std::unique_ptr<nn::Module> model;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<DistributedDataParallel> ddp;
};

/// What step `number` learns.
using Lessons = std::function<Lesson(std::uint64_t number)>;

inline constexpr std::uint64_t kLessons = 4;

/// Weights after steps on all ranks, with every way to share samples, are those of one rank, and move.
inline void expect_alike_on_any_number_of_ranks(const model_zoo::ModelOptions& options,
                                                const model_zoo::ModelInput& input, const Lessons& lessons) {
  for (const Shares shares : {Shares::kEven, Shares::kGrowing, Shares::kLastIdle}) {
    SCOPED_TRACE(model_zoo::name_of(options));
    ModelLoop truth(options, input, false), mine(options, input, true);
    const std::vector<float> start = floats_of(truth.model->arena()->masters());
    for (std::uint64_t step = 1; step <= kLessons; ++step) {
      const Lesson lesson = lessons(step);
      const Range all{0, lesson.input.size(0)};
      truth.step(all, step, lesson);
      mine.step(cut(all, world().rank(), world().size(), shares), step, lesson);
      const Tensor& weights = truth.model->arena()->masters();
      EXPECT_LE(distance(mine.model->arena()->masters(), weights), 1e-5 * norm(weights));
    }
    EXPECT_GT(distance(truth.model->arena()->masters(), Tensor::from(start, {static_cast<std::int64_t>(start.size())})),
              0.01);
    require_equal_weights(*mine.model->arena(), mine.optimizer->state(), *world().communicator());
  }
}

/// Two models that differ in whether blocks run again in the backward pass train to the same bits.
inline void expect_equal_bits(const model_zoo::ModelOptions& plain_options,
                              const model_zoo::ModelOptions& again_options, const model_zoo::ModelInput& input,
                              const Lessons& lessons) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    amp::AmpOptions amp;
    if (dtype != DType::kFloat32) amp = {.opt_level = amp::OptLevel::kO1, .dtype = dtype};
    ModelLoop plain(plain_options, input, true, amp), again(again_options, input, true, amp);
    for (std::uint64_t step = 1; step <= kLessons; ++step) {
      const Lesson lesson = lessons(step);
      const Range share = cut({0, lesson.input.size(0)}, world().rank(), world().size(), Shares::kGrowing);
      plain.step(share, step, lesson);
      again.step(share, step, lesson);
    }
    EXPECT_EQ(bits_of({again.model->arena()->masters()}), bits_of({plain.model->arena()->masters()}));
  }
}

/// How many slots of the arena a parameter has.
inline std::int64_t slots_of(const ModelLoop& loop, const std::string& name) {
  return std::ranges::count_if(loop.model->arena()->slots(),
                               [&](const nn::Arena::Slot& slot) { return slot.parameter.name == name; });
}

}  // namespace lockstep::comm
