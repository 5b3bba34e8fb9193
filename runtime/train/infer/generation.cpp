// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/infer/generation.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <vector>

#include "model_zoo/language_model.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/make_dataset.h"
#include "runtime/data/text_codec.h"
#include "runtime/step/saved_tensors.h"
#include "runtime/train/network.h"
#include "runtime/train/training_state.h"

namespace lockstep::train {

namespace {

data::TextCodec codec_of(const data::DataOptions& data) {
  const auto* const tokens = std::get_if<data::TokensOptions>(&data.train);
  if (tokens == nullptr)
    throw UsageError("a text is for a run that was trained on data.train.tokens", "Predict files with --input PATH.");
  if (data.prepared && !data.prepared->tokenizer.empty()) return data::TextCodec(data.prepared->tokenizer);
  return data::TextCodec(*tokens);
}

/// A language model and the text that it has seen.
class Writer {
 public:
  Writer(model_zoo::LanguageModel& model, std::int64_t known, Device device)
      : model_(model), known_(static_cast<std::size_t>(known)), device_(device) {}

  /// Logits of the token behind `tokens`, which go on from those before.
  std::vector<float> next(std::span<const std::int64_t> tokens) {
    text_.insert(text_.end(), tokens.begin(), tokens.end());
    std::span<const std::int64_t> unseen = tokens;
    if (cache_.length() + static_cast<std::int64_t>(tokens.size()) > model_.context()) {
      cache_ = {};
      const auto kept = static_cast<std::size_t>(std::max<std::int64_t>(model_.context() / 2, 1));
      unseen = std::span<const std::int64_t>(text_).last(std::min(kept, text_.size()));
    }
    const Tensor input = Tensor::from(std::vector<std::int64_t>(unseen.begin(), unseen.end()),
                                      {1, static_cast<std::int64_t>(unseen.size())});
    const Tensor logits = model_zoo::forward(model_, input.to(device_), cache_).to(kCpu);
    const auto all = logits.as<float>();
    // Leaves out the logits of tokens that the data does not have.
    const auto last = all.last(static_cast<std::size_t>(model_.vocabulary())).first(known_);
    return {last.begin(), last.end()};
  }

 private:
  model_zoo::LanguageModel& model_;
  std::size_t known_;  ///< tokens of the data
  Device device_;
  nn::KeyValueCache cache_;
  std::vector<std::int64_t> text_;
};

}  // namespace

struct Generator::Loaded {
  Loaded(const job::Job& job, const SavedModel& from, Device on)
      : data(data_of(job, from)),
        codec(codec_of(data)),
        saved(find_checkpoint(from.checkpoint)),
        description(describe(data, data::Split::kTrain)),
        model(build_model(job, Task(job.train(), description))),
        language(dynamic_cast<model_zoo::LanguageModel*>(model.get())),
        device(on) {
    for (const std::string& notice : saved.notices) spdlog::warn(notice);
    if (language == nullptr) throw UsageError("the job's model writes no texts: gpt and llama do");
    restore_for(job, saved, [&] { step::restore_model(*model, saved, weights_of(from.raw_weights)); });
    model->to(device).train(false);
  }

  /// The tokens of a prompt, all of them the model's.
  std::vector<std::int64_t> tokens_of(const std::string& prompt) const {
    std::vector<std::int64_t> tokens = codec.encode(prompt);
    if (tokens.empty()) throw UsageError("--prompt: is empty", "Give the text to go on with.");
    for (const std::int64_t token : tokens) {
      if (token < description.vocabulary) continue;
      throw UsageError("--prompt: token " + std::to_string(token) + " is outside the data's vocabulary of " +
                       std::to_string(description.vocabulary));
    }
    return tokens;
  }

  data::DataOptions data;
  data::TextCodec codec;
  checkpoint::Checkpoint saved;
  data::Description description;
  std::unique_ptr<nn::Module> model;
  model_zoo::LanguageModel* language;
  Device device;
};

Generator::Generator(const job::Job& job, const SavedModel& saved, Device device)
    : loaded_(std::make_unique<Loaded>(job, saved, device)) {}

Generator::~Generator() = default;

GenerateResult Generator::write(const GenerateOptions& options, const std::function<void(std::string_view)>& emit) {
  require_none(problems_of(options.sampling), "infer");
  std::vector<std::int64_t> unseen = loaded_->tokens_of(options.prompt);
  const autograd::NoGrad no_grad;
  const CounterRng random(options.seed, CounterRng::Purpose::kUser);
  Writer writer(*loaded_->language, loaded_->description.vocabulary, loaded_->device);
  const auto begin = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::vector<float> logits = writer.next(unseen);
    unseen = {nn::sample_token(logits, options.sampling, random, static_cast<std::uint64_t>(i))};
    emit(loaded_->codec.decode(unseen.front()));
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return {loaded_->saved.path, options.tokens, static_cast<double>(options.tokens) / std::max(time.count(), 1e-9)};
}

GenerateResult generate(const job::Job& job, const GenerateOptions& options,
                        const std::function<void(std::string_view)>& emit) {
  return Generator(job, options.saved, options.device).write(options, emit);
}

}  // namespace lockstep::train
