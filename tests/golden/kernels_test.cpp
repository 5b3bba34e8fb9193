// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/backend.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

class GoldenKernels : public GoldenTest {};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenKernels, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenKernels, ConvolutionIsPyTorchs) {
  for_each_case("conv", [&](const json& stored) {
    const ConvGeometry geometry = conv_geometry(stored);
    const Tensor x = read(stored["x"]), weight = read(stored["weight"]), bias = read(stored["bias"]);
    const Tensor dy = read(stored["dy"]), y = empty_like(dy);
    const Sums of_products{weight.numel() / weight.size(0) + 1}, of_positions{dy.shape().rows()};
    backend().conv_forward(geometry, x, weight, bias, y);
    expect(y, stored["y"], of_products);
    const Tensor dx = empty_like(x), dweight = empty_like(weight), dbias = empty_like(bias);
    backend().conv_backward(geometry, x, weight, dy, dx, dweight, dbias, false);
    expect(dx, stored["dx"], {weight.numel() / weight.shape().back()});
    expect(dweight, stored["dweight"], of_positions);
    expect(dbias, stored["dbias"], of_positions);
  });
}

TEST_P(GoldenKernels, PoolingIsPyTorchs) {
  for_each_case("pool", [&](const json& stored) {
    const bool max = stored["kind"] == "max";
    const PoolGeometry geometry{.kind = max ? PoolKind::kMax : PoolKind::kAverage,
                                .spatial_rank = stored["spatial_rank"],
                                .window = extents(stored["window"], 1),
                                .stride = extents(stored["stride"], 1),
                                .padding = extents(stored["padding"], 0),
                                .count_include_pad = stored["count_include_pad"]};
    const Tensor x = read(stored["x"]), dy = read(stored["dy"]), y = empty_like(dy), dx = empty_like(x);
    const Tensor indices = max ? empty(y.shape(), DType::kInt32) : Tensor();
    backend().pool_forward(geometry, x, y, indices);
    expect(y, stored["y"]);
    if (max) expect(indices, stored["indices"]);
    backend().pool_backward(geometry, dy, indices, dx);
    expect(dx, stored["dx"]);
  });
}

TEST_P(GoldenKernels, BatchNormIsPyTorchs) {
  for_each_case("batch_norm", [&](const json& stored) {
    const bool relu = stored["relu"];
    const Tensor x = read(stored["x"]), gamma = read(stored["gamma"]), beta = read(stored["beta"]);
    const Tensor residual = stored.contains("residual") ? read(stored["residual"]) : Tensor();
    const std::int64_t channels = gamma.numel();
    const Tensor packed = empty({1, 2 * channels + 1}, dtype()), share = packed.reshaped({packed.numel()});
    const Tensor mean = empty_like(gamma), inv_std = empty_like(gamma), count = scalar(0), y = empty_like(x);
    backend().batch_norm_statistics(x, share.rows(0, channels), share.rows(channels, 2 * channels));
    backend().fill(share.rows(2 * channels, 2 * channels + 1), static_cast<double>(x.shape().rows()));
    const Tensor running = read(stored["running"]), next_running = empty_like(running);
    backend().batch_norm_finalize(packed, 1e-5, 0.1, running, mean, inv_std, count, next_running);
    expect(next_running, stored["next_running"]);
    backend().batch_norm_apply(x, mean, inv_std, gamma, beta, residual, relu, y);
    expect(y, stored["y"], {x.shape().rows()});

    const Tensor dy = read(stored["dy"]), output = relu ? y : Tensor();
    const Tensor sum_dy = empty_like(gamma), sum_dy_xmu = empty_like(gamma), dgamma = empty_like(gamma);
    const Tensor dx = empty_like(x), dresidual = residual.defined() ? empty_like(x) : Tensor();
    backend().batch_norm_backward_reduce(x, mean, {.dy = dy, .masked = dresidual}, {output}, sum_dy, sum_dy_xmu, {});
    backend().multiply(sum_dy_xmu, inv_std, dgamma);
    expect(sum_dy, stored["dbeta"], {x.shape().rows()});
    expect(dgamma, stored["dgamma"], {x.shape().rows()});
    backend().batch_norm_backward_apply(x, mean, inv_std, gamma, dy, {output}, sum_dy, sum_dy_xmu, count, dx);
    expect(dx, stored["dx"], {x.shape().rows()});
    if (residual.defined()) expect(dresidual, stored["dresidual"]);
  });
}

TEST_P(GoldenKernels, CrossEntropyIsPyTorchs) {
  for_each_case("cross_entropy", [&](const json& stored) {
    const Tensor logits = read(stored["logits"]), targets = read(stored["targets"], DType::kInt64);
    const Tensor loss = scalar(0), log_sum_exp = empty(targets.shape(), dtype()), dlogits = empty_like(logits);
    const double smoothing = stored["label_smoothing"];
    const double weight = 1.0 / static_cast<double>(targets.numel());
    backend().cross_entropy(logits, {targets, smoothing}, weight, loss, log_sum_exp);
    expect(loss, testing::tensor_of({stored["loss"].get<double>()}, {}, DType::kFloat64));
    backend().cross_entropy_backward(logits, {targets, smoothing}, weight, log_sum_exp, scalar(1), dlogits);
    expect(dlogits, stored["dlogits"]);
  });
}

TEST_P(GoldenKernels, MseIsPyTorchs) {
  for_each_case("mse", [&](const json& stored) {
    const Tensor x = read(stored["x"]), target = read(stored["target"]), loss = scalar(0), dx = empty_like(x);
    const double weight = 1.0 / static_cast<double>(x.numel());
    backend().pair_loss(PairLoss::kSquare, x, target, weight, loss);
    expect(loss, testing::tensor_of({stored["loss"].get<double>()}, {}, DType::kFloat64));
    backend().pair_loss_backward(PairLoss::kSquare, x, target, PairSide::kX, weight, scalar(1), dx);
    expect(dx, stored["dx"]);
  });
}

TEST_P(GoldenKernels, ActivationsArePyTorchs) {
  for (const auto& [name, activation] : {std::pair{"relu", Activation::kRelu}, std::pair{"gelu", Activation::kGelu},
                                         std::pair{"gelu_tanh", Activation::kGeluTanh}}) {
    const json& stored = golden()["activation"][name];
    const Tensor x = read(stored["x"]), dy = read(stored["dy"]), y = empty_like(x), dx = empty_like(x);
    backend().activate(activation, x, y);
    expect(y, stored["y"]);
    backend().activate_backward(activation, x, dy, dx);
    expect(dx, stored["dx"]);
  }
}

TEST_P(GoldenKernels, SoftmaxIsPyTorchs) {
  for (const bool log : {false, true}) {
    const json& stored = golden()["softmax"][log ? "log_softmax" : "softmax"];
    const Tensor x = read(stored["x"]), dy = read(stored["dy"]), y = empty_like(x), dx = empty_like(x);
    backend().softmax(x, log, y);
    expect(y, stored["y"]);
    backend().softmax_backward(y, log, dy, dx);
    expect(dx, stored["dx"]);
  }
}

}  // namespace
}  // namespace lockstep::kernels
