// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>

#include "model_zoo/bert.h"
#include "model_zoo/convnet.h"
#include "model_zoo/gpt.h"
#include "model_zoo/llama.h"
#include "model_zoo/mlp.h"
#include "model_zoo/mobilenet_v2.h"
#include "model_zoo/model_input.h"
#include "model_zoo/registered.h"
#include "model_zoo/resnet.h"
#include "model_zoo/unet.h"
#include "model_zoo/vit.h"
#include "runtime/nn/module.h"

namespace lockstep::model_zoo {

/// The models that there are. The header of each declares make_model() for its options; name_of() asks their
/// model_name(), where they have one.
using ModelOptions = std::variant<MlpOptions, ConvnetOptions, ResnetOptions, GptOptions, LlamaOptions, Unet2dOptions,
                                  Unet3dOptions, VitOptions, BertOptions, MobilenetV2Options, RegisteredOptions>;

/// The model, its parameters initialised from `seed`. Throws FieldError, naming the option as a job would
/// ("model.convnet.block[1].kernel"), for options without a meaning and for a model that does not fit the samples.
std::unique_ptr<nn::Module> build(const ModelOptions& options, const ModelInput& input, std::uint64_t seed);

/// The model with parameters that have no values and take no memory: for names, shapes and counts. Throws FieldError
/// for a count that makes a model larger than any that can be trained (nn::OutlineTally).
std::unique_ptr<nn::Module> outline(const ModelOptions& options, const ModelInput& input);

/// The model's name in a job, "gpt"; "resnet50" of a resnet of that depth, or the name of a registered model.
std::string name_of(const ModelOptions& options);

}  // namespace lockstep::model_zoo
