// SPDX-License-Identifier: Apache-2.0
// The recorded backwards: first gradients under create_graph, and the gradients of those.
#include <functional>

#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensors& inputs)>;

class SecondGradients : public GoldenTest {
 protected:
  /// `function_of` gives the operation of a stored case.
  void check(const std::string& group, const std::function<Function(const json& stored)>& function_of) const {
    const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
    for_each_case(
        group, [&](const json& stored) { check(function_of(stored), stored); }, "second_gradients");
  }

 private:
  Tensors read_all(const json& stored) const {
    Tensors tensors;
    for (const json& one : stored) tensors.push_back(read(one));
    return tensors;
  }

  void check(const Function& function, const json& stored) const {
    Tensors of = read_all(stored["inputs"]);
    for (const Tensor& input : of) input.set_requires_grad(true);
    const Tensor dy = read(stored["dy"]);
    Tensors all = of;
    all.push_back(dy);
    const Sums sums = Sums::over(all);
    dy.set_requires_grad(true);
    const Tensors directions = read_all(stored["directions"]);
    const Tensors first = autograd::grad(function(of), of, dy, {.create_graph = true});
    Tensors outputs, seeds;
    for (std::size_t i = 0; i < first.size(); ++i) {
      SCOPED_TRACE("gradient of input " + std::to_string(i));
      expect(first[i], stored["first"][i], sums);
      if (!first[i].requires_grad()) continue;  // a constant
      outputs.push_back(first[i]);
      seeds.push_back(directions[i]);
    }
    of.push_back(dy);
    const Tensors second = autograd::grad(outputs, of, seeds, {.allow_unused = true});
    for (std::size_t i = 0; i < of.size(); ++i) {
      SCOPED_TRACE("second gradient, of input " + std::to_string(i));
      expect(second[i].defined() ? second[i] : Tensor::zeros(of[i].shape(), dtype(), device()), stored["second"][i],
             sums.twice());
    }
  }
};

INSTANTIATE_TEST_SUITE_P(PyTorch, SecondGradients, ::testing::ValuesIn(kComputers), name_of_computer);

Activation activation_in(const json& name) {
  static const std::map<std::string, Activation> all{{"none", Activation::kNone}, {"relu", Activation::kRelu},
                                                     {"gelu", Activation::kGelu}, {"gelu_tanh", Activation::kGeluTanh},
                                                     {"tanh", Activation::kTanh}, {"sigmoid", Activation::kSigmoid}};
  return all.at(name.get<std::string>());
}

TEST_P(SecondGradients, OfLinearArePyTorchs) {
  check("linear", [](const json& stored) {
    return [activation = activation_in(stored["activation"])](const Tensors& in) {
      return ops::linear(in[0], in[1], in[2], activation);
    };
  });
}

TEST_P(SecondGradients, OfMatmulArePyTorchs) {
  check("matmul", [](const json&) { return [](const Tensors& in) { return ops::matmul(in[0], in[1]); }; });
}

TEST_P(SecondGradients, OfConvolutionsArePyTorchs) {
  check("conv", [](const json& stored) -> Function {
    const ConvGeometry geometry = conv_geometry(stored);
    if (stored["transposed"]) {
      return [geometry, output_padding = extents(stored["output_padding"], 0)](const Tensors& in) {
        return ops::conv_transpose(in[0], in[1], in[2], geometry, output_padding);
      };
    }
    return [geometry](const Tensors& in) { return ops::conv(in[0], in[1], in[2], geometry); };
  });
}

TEST_P(SecondGradients, OfPoolingArePyTorchs) {
  check("pool", [](const json& stored) {
    const PoolGeometry geometry{.kind = stored["kind"] == "max" ? PoolKind::kMax : PoolKind::kAverage,
                                .spatial_rank = stored["spatial_rank"],
                                .window = extents(stored["window"], 1),
                                .stride = extents(stored["stride"], 1),
                                .padding = extents(stored["padding"], 0),
                                .count_include_pad = stored["count_include_pad"]};
    return [geometry](const Tensors& in) { return ops::pool(ops::mul(in[0], in[0]), geometry); };
  });
  check("global_average_pool",
        [](const json&) { return [](const Tensors& in) { return ops::global_average_pool(ops::mul(in[0], in[0])); }; });
}

TEST_P(SecondGradients, OfBatchNormArePyTorchs) {
  check("batch_norm", [this](const json& stored) {
    return [running = read(stored["running"]), training = stored["training"].get<bool>(),
            options = ops::BatchNormOptions{.relu = stored["relu"]}](const Tensors& in) {
      const Tensor residual = in.size() > 3 ? in[3] : Tensor();
      return training ? ops::batch_norm(in[0], in[1], in[2], residual, {}, {}, options)
                      : ops::batch_norm_inference(in[0], in[1], in[2], residual, running, options);
    };
  });
}

TEST_P(SecondGradients, OfActivationsArePyTorchs) {
  check("activation", [](const json& stored) {
    return [activation = activation_in(stored["activation"])](const Tensors& in) {
      return ops::activate(activation, in[0]);
    };
  });
}

TEST_P(SecondGradients, OfSoftmaxArePyTorchs) {
  check("softmax", [](const json& stored) {
    return [log = stored["log"].get<bool>()](const Tensors& in) {
      return log ? ops::log_softmax(in[0]) : ops::softmax(in[0]);
    };
  });
}

TEST_P(SecondGradients, OfLossesArePyTorchs) {
  check("cross_entropy", [this](const json& stored) {
    return [targets = read(stored["targets"], DType::kInt64),
            options = ops::LossOptions{.label_smoothing = stored["label_smoothing"]}](const Tensors& in) {
      return ops::cross_entropy(in[0], targets, options);
    };
  });
  check("mse", [](const json&) { return [](const Tensors& in) { return ops::mse(in[0], in[1]); }; });
}

TEST_P(SecondGradients, OfBroadcastArithmeticArePyTorchs) {
  check("broadcast", [](const json& stored) {
    return [product = stored["product"].get<bool>()](const Tensors& in) {
      return product ? ops::mul(in[0], in[1]) : ops::add(in[0], in[1]);
    };
  });
}

}  // namespace
}  // namespace lockstep::kernels
