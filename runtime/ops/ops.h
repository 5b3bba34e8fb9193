// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every differentiable operation. Inputs are cast as amp/autocast's policy says; results are new tensors.
#include "runtime/ops/attention.h"
#include "runtime/ops/batch_norm.h"
#include "runtime/ops/broadcast.h"
#include "runtime/ops/compare.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/elementwise.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/factories.h"
#include "runtime/ops/linear.h"
#include "runtime/ops/losses.h"
#include "runtime/ops/normalization.h"
#include "runtime/ops/operators.h"
#include "runtime/ops/pool.h"
#include "runtime/ops/reduce.h"
#include "runtime/ops/shape.h"
#include "runtime/ops/softmax.h"
#include "runtime/ops/unary.h"
#include "runtime/ops/upsample.h"
