// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "runtime/autograd/engine.h"
#include "runtime/ops/embedding.h"
#include "runtime/ops/normalization.h"
#include "runtime/ops/upsample.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

class GoldenNorms : public GoldenTest {
 protected:
  template <class Run>
  static void for_each(const std::string& group, Run run) {
    for (const auto& [name, stored] : golden("norms").at(group).items()) {
      SCOPED_TRACE(group + "." + name);
      run(stored);
    }
  }

  Tensor leaf(const json& stored, const char* name) const {
    if (!stored.contains(name)) return {};
    const Tensor tensor = read(stored[name]);
    tensor.set_requires_grad(true);
    return tensor;
  }

  static Shape shape_in(const json& stored) {
    return Shape{std::span<const std::int64_t>(stored.get<std::vector<std::int64_t>>())};
  }

  /// Compares operation(x, weight, bias) and all its gradients.
  template <class Operation>
  void expect_norm(const json& stored, Operation operation) const {
    const Tensor x = leaf(stored, "x"), weight = leaf(stored, "weight"), bias = leaf(stored, "bias");
    const Tensor y = operation(x, weight, bias);
    // Over a sample, or over all places of a channel.
    const Sums sums{std::max(x.numel() / x.size(0), x.numel() / x.size(-1))};
    expect(y, stored["y"], sums);
    std::vector<Tensor> inputs{x};
    std::vector<std::string> names{"dx"};
    for (const auto& [parameter, name] : {std::pair(weight, "dweight"), std::pair(bias, "dbias")}) {
      if (!parameter.defined()) continue;
      inputs.push_back(parameter);
      names.emplace_back(name);
    }
    const std::vector<Tensor> gradients = autograd::grad(y, inputs, read(stored["dy"]));
    for (std::size_t i = 0; i < names.size(); ++i) expect(gradients[i], stored[names[i]], sums);
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenNorms, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenNorms, LayerNormIsPyTorchs) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for_each("layer_norm", [&](const json& stored) {
    expect_norm(stored, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
      return ops::layer_norm(x, shape_in(stored["normalized_shape"]), weight, bias, stored["epsilon"]);
    });
  });
}

TEST_P(GoldenNorms, RmsNormIsPyTorchs) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for_each("rms_norm", [&](const json& stored) {
    std::optional<double> epsilon;
    if (!stored["epsilon"].is_null()) epsilon = stored["epsilon"].get<double>();
    expect_norm(stored, [&](const Tensor& x, const Tensor& weight, const Tensor&) {
      return ops::rms_norm(x, shape_in(stored["normalized_shape"]), weight, epsilon);
    });
  });
}

TEST_P(GoldenNorms, GroupNormIsPyTorchs) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for_each("group_norm", [&](const json& stored) {
    expect_norm(stored, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
      return ops::group_norm(x, stored["groups"], weight, bias);
    });
  });
}

TEST_P(GoldenNorms, InstanceNormIsPyTorchs) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for_each("instance_norm", [&](const json& stored) {
    expect_norm(stored, [&](const Tensor& x, const Tensor& weight, const Tensor& bias) {
      return ops::instance_norm(x, weight, bias);
    });
  });
}

TEST_P(GoldenNorms, EmbeddingIsPyTorchs) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for_each("embedding", [&](const json& stored) {
    const Tensor weight = leaf(stored, "weight"), indices = read(stored["indices"], DType::kInt64);
    std::optional<std::int64_t> padding;
    if (!stored["padding"].is_null()) padding = stored["padding"].get<std::int64_t>();
    const Tensor y = ops::embedding(weight, indices, padding);
    expect(y, stored["y"]);
    expect(autograd::grad(y, {weight}, read(stored["dy"])).front(), stored["dweight"]);
  });
}

TEST_P(GoldenNorms, UpsampleIsPyTorchs) {
  const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
  for_each("upsample", [&](const json& stored) {
    const Tensor x = leaf(stored, "x");
    const UpsampleMode mode = stored["linear"] ? UpsampleMode::kLinear : UpsampleMode::kNearest;
    const bool corners = stored["align_corners"];
    const Tensor y = stored["extents"].is_null()
                         ? ops::upsample_by(x, stored["scale_factor"].get<std::vector<double>>(), mode, corners)
                         : ops::upsample(x, stored["extents"].get<std::vector<std::int64_t>>(), mode, corners);
    expect(y, stored["y"]);
    expect(autograd::grad(y, {x}, read(stored["dy"])).front(), stored["dx"]);
  });
}

}  // namespace
}  // namespace lockstep::kernels
