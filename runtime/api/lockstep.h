// SPDX-License-Identifier: Apache-2.0
// All that a program needs to train with Lockstep's pieces: the loop, models, data, checkpoints. Installed as
// <lockstep/lockstep.h>, with those headers that are included from here.
#pragma once

#include <lockstep/version.h>

// Tensors and operations on them, differentiated.
#include "amp/autocast/autocast.h"
#include "runtime/autograd/anomaly.h"
#include "runtime/autograd/engine.h"
#include "runtime/autograd/function.h"
#include "runtime/autograd/grad_mode.h"
#include "runtime/autograd/gradcheck.h"
#include "runtime/autograd/node.h"
#include "runtime/autograd/saved_tensor.h"
#include "runtime/autograd/tensor_hooks.h"
#include "runtime/base/error.h"
#include "runtime/ops/ops.h"
#include "runtime/tensor/memory.h"
#include "runtime/tensor/print.h"
#include "runtime/tensor/tensor.h"

// Models and the data that they learn from.
#include "model_zoo/build.h"
#include "runtime/data/eval_batches.h"
#include "runtime/data/loader.h"
#include "runtime/data/make_dataset.h"
#include "runtime/nn/attention.h"
#include "runtime/nn/checkpoint.h"
#include "runtime/nn/embedding.h"
#include "runtime/nn/feed_forward.h"
#include "runtime/nn/forward.h"
#include "runtime/nn/layers.h"
#include "runtime/nn/module.h"
#include "runtime/nn/multi_input_module.h"
#include "runtime/nn/normalization.h"
#include "runtime/nn/positions.h"
#include "runtime/nn/recurrent.h"
#include "runtime/nn/recurrent_layers.h"
#include "runtime/nn/sampling.h"
#include "runtime/nn/step_context.h"
#include "runtime/nn/transformer_block.h"
#include "runtime/nn/upsample.h"

// Training: ranks, mixed precision, optimizers.
#include "amp/grad_scaler/grad_scaler.h"
#include "amp/grad_scaler/opt_level.h"
#include "comm/ddp/digest.h"
#include "comm/ddp/distributed_data_parallel.h"
#include "comm/group/world.h"
#include "runtime/optim/any_optimizer.h"
#include "runtime/optim/clip.h"
#include "runtime/optim/lamb.h"
#include "runtime/optim/lars.h"
#include "runtime/optim/lr_range_test.h"
#include "runtime/optim/novograd.h"
#include "runtime/optim/reduce_on_plateau.h"
#include "runtime/optim/registered_schedule.h"
#include "runtime/optim/schedule.h"
#include "runtime/optim/state_dict.h"
#include "runtime/optim/weight_mean.h"
#include "runtime/step/checkpoints.h"
#include "runtime/step/replicas.h"
#include "runtime/step/training_step.h"
#include "runtime/step/weight_file.h"

// A program that is the lockstep command with models, data and losses of its own; a run inside any other program, and a
// trained run in use.
#include "launcher/main.h"
#include "runtime/step/registered_loss.h"
#include "runtime/train/infer/predictor.h"
#include "runtime/train/trainer.h"
