// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <optional>

#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

using ops::LossReduction;
using Tensors = std::vector<Tensor>;

class GoldenLosses : public GoldenTest {
 protected:
  double option(const json& stored, const std::string& name, double otherwise) const {
    return stored["options"].value(name, otherwise);
  }
  Tensor tensor_option(const json& stored, const std::string& name) const {
    return stored["options"].contains(name) ? read(stored["options"][name]) : Tensor();
  }
  static LossReduction reduction(const json& stored) {
    const std::string name = stored["reduction"];
    return {name == "mean" ? ops::Reduction::kMean : name == "sum" ? ops::Reduction::kSum : ops::Reduction::kNone};
  }

  static bool of_classes(const std::string& name) {
    return name == "ctc" || name == "nll" || name == "cross_entropy" || name == "multi_margin" ||
           name == "multilabel_margin";
  }
  static std::optional<std::int64_t> ignore_index(const json& stored) {
    if (!stored["options"].contains("ignore_index")) return {};
    return stored["options"]["ignore_index"].get<std::int64_t>();
  }

  /// Calls loss(inputs and constants, stored case) for every case of its name.
  void expect_pytorchs(const std::string& name, const std::function<Tensor(const Tensors&, const json&)>& loss) const {
    const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
    for_each_case(
        name,
        [&](const json& stored) {
          Tensors inputs, all;
          for (const json& input : stored["inputs"]) inputs.push_back(read(input));
          for (const Tensor& input : inputs) input.set_requires_grad(true);
          all = inputs;
          for (const json& constant : stored["constants"]) {
            all.push_back(read(constant, of_classes(name) ? DType::kInt64 : dtype()));
          }
          const Tensor dy = read(stored["dy"]);
          const Tensor y = loss(all, stored);
          const Sums sums = Sums::over(all);
          expect(y, stored["y"], sums);
          const Tensors first = autograd::grad(y, inputs, dy);
          for (std::size_t i = 0; i < inputs.size(); ++i) expect(first[i], stored["first"][i], sums);
          if (stored["second"].empty()) return;

          dy.set_requires_grad(true);
          const Tensors recorded = autograd::grad(loss(all, stored), inputs, dy, {.create_graph = true});
          Tensor total = ops::sum(recorded[0]);
          for (std::size_t i = 1; i < recorded.size(); ++i) total = ops::add(total, ops::sum(recorded[i]));
          Tensors of = inputs;
          of.push_back(dy);
          const Tensors second = autograd::grad(total, of, {}, {.allow_unused = true});
          for (std::size_t i = 0; i < of.size(); ++i) {
            expect(second[i].defined() ? second[i] : ops::zeros_like(of[i]), stored["second"][i], sums.twice());
          }
        },
        "composed_losses");
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenLosses, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenLosses, DistancesArePyTorchs) {
  expect_pytorchs("l1", [](const Tensors& in, const json& c) { return ops::l1(in[0], in[1], reduction(c)); });
  expect_pytorchs("smooth_l1", [&](const Tensors& in, const json& c) {
    return ops::smooth_l1(in[0], in[1], option(c, "beta", 1), reduction(c));
  });
  expect_pytorchs("huber", [&](const Tensors& in, const json& c) {
    return ops::huber(in[0], in[1], option(c, "delta", 1), reduction(c));
  });
}

TEST_P(GoldenLosses, EntropiesArePyTorchs) {
  expect_pytorchs("kl_div", [](const Tensors& in, const json& c) {
    return ops::kl_div(in[0], in[1], c["options"].contains("log_target"), reduction(c));
  });
  expect_pytorchs("binary_cross_entropy_with_logits", [&](const Tensors& in, const json& c) {
    return ops::binary_cross_entropy_with_logits(
        in[0], in[1], {reduction(c), tensor_option(c, "weight"), tensor_option(c, "pos_weight")});
  });
  expect_pytorchs("binary_cross_entropy", [&](const Tensors& in, const json& c) {
    return ops::binary_cross_entropy(in[0], in[1], {reduction(c), tensor_option(c, "weight"), {}});
  });
  expect_pytorchs("nll", [&](const Tensors& in, const json& c) {
    return ops::nll(in[0], in[1], {reduction(c), tensor_option(c, "weight"), ignore_index(c)});
  });
  for (const char* const name : {"cross_entropy", "cross_entropy_of_probabilities"}) {
    expect_pytorchs(name, [&](const Tensors& in, const json& c) {
      return ops::cross_entropy(in[0], in[1],
                                {.label_smoothing = option(c, "label_smoothing", 0),
                                 .divisor = c["reduction"] == "sum" ? 1.0 : 0.0,
                                 .weight = tensor_option(c, "weight"),
                                 .ignore_index = ignore_index(c)});
    });
  }
  expect_pytorchs("ctc", [&](const Tensors& in, const json& c) {
    return ops::ctc(ops::log_softmax(in[0]), in[1], in[2], in[3],
                    {.reduction = reduction(c).reduction, .zero_infinity = c["options"].contains("zero_infinity")});
  });
  expect_pytorchs("poisson_nll", [&](const Tensors& in, const json& c) {
    return ops::poisson_nll(in[0], in[1],
                            {reduction(c), !c["options"].contains("log_input"), c["options"].contains("full")});
  });
}

TEST_P(GoldenLosses, MarginsArePyTorchs) {
  expect_pytorchs("hinge_embedding", [&](const Tensors& in, const json& c) {
    return ops::hinge_embedding(in[0], in[1], option(c, "margin", 1), reduction(c));
  });
  expect_pytorchs("multi_margin", [&](const Tensors& in, const json& c) {
    return ops::multi_margin(
        in[0], in[1],
        {reduction(c), static_cast<int>(option(c, "p", 1)), option(c, "margin", 1), tensor_option(c, "weight")});
  });
  expect_pytorchs("multilabel_margin",
                  [](const Tensors& in, const json& c) { return ops::multilabel_margin(in[0], in[1], reduction(c)); });
  expect_pytorchs("soft_margin",
                  [](const Tensors& in, const json& c) { return ops::soft_margin(in[0], in[1], reduction(c)); });
  expect_pytorchs("margin_ranking", [&](const Tensors& in, const json& c) {
    return ops::margin_ranking(in[0], in[1], in[2], option(c, "margin", 0), reduction(c));
  });
  expect_pytorchs("cosine_embedding", [&](const Tensors& in, const json& c) {
    return ops::cosine_embedding(in[0], in[1], in[2], option(c, "margin", 0), reduction(c));
  });
  expect_pytorchs("triplet_margin", [&](const Tensors& in, const json& c) {
    return ops::triplet_margin(
        in[0], in[1], in[2],
        {reduction(c), option(c, "margin", 1), option(c, "p", 2), 1e-6, c["options"].contains("swap")});
  });
}

}  // namespace
}  // namespace lockstep::kernels
