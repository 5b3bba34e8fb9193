// SPDX-License-Identifier: Apache-2.0
// Reductions, softmax, scans, broadcasts, movement, indexing and losses:
//   OMP_NUM_THREADS=1 build/release/bin/structure_bench [NAME...]
// tests/bench/beside_pytorch.py runs it beside PyTorch. A name ends in the shape, and the dimension where there is one.

#include "tests/bench/operation_cases.h"

namespace lockstep::bench {
namespace {

using Cases = std::vector<OperationCase>;
using Inputs = std::vector<Tensor>;

/// A function of a tensor and a dimension, for each shape and dimension.
template <class F>
void add_along(Cases& all, const std::string& name, bool differentiated,
               const std::vector<std::pair<Shape, int>>& where, F function) {
  for (const auto& [shape, dim] : where) {
    all.push_back({fmt::format("{}/{}/{}", name, dimensions(shape), dim),
                   {shape},
                   [function, dim = dim](const Inputs& in) { return function(in[0], dim); },
                   differentiated ? 1u : 0u});
  }
}

void add_reductions(Cases& all) {
  const std::vector<std::pair<Shape, int>> everywhere{{{12800, 10}, 1},    {{2048, 64}, 1},    {{128, 1000}, 1},
                                                      {{2048, 64}, 0},     {{1000, 128}, 0},   {{10, 12800}, 0},
                                                      {{100, 10, 128}, 1}, {{16, 64, 128}, 1}, {{8, 1000, 16}, 1}};
  add_along(all, "sum", false, everywhere, [](const Tensor& x, int dim) { return ops::sum(x, dim); });
  add_along(all, "mean", false, everywhere, [](const Tensor& x, int dim) { return ops::mean(x, dim); });
  add_along(all, "amax", false, everywhere, [](const Tensor& x, int dim) { return ops::amax(x, dim); });
  add_along(all, "var", false, everywhere, [](const Tensor& x, int dim) { return ops::var(x, dim); });
  add_along(all, "argmax", false, everywhere, [](const Tensor& x, int dim) { return ops::argmax(x, dim); });
  add_along(all, "logsumexp", false, everywhere, [](const Tensor& x, int dim) { return ops::logsumexp(x, dim); });
  const std::vector<std::pair<Shape, int>> softmaxes{{{12800, 10}, 1},   {{2048, 64}, 1},     {{128, 1000}, 1},
                                                     {{16, 64, 128}, 1}, {{100, 10, 128}, 1}, {{1000, 128}, 0}};
  add_along(all, "softmax", true, softmaxes, [](const Tensor& x, int dim) { return ops::softmax(x, dim); });
  add_along(all, "log_softmax", true, softmaxes, [](const Tensor& x, int dim) { return ops::log_softmax(x, dim); });
  add_along(all, "cumsum", false,
            {{{12800, 10}, 1}, {{2048, 64}, 1}, {{128, 1000}, 1}, {{2048, 64}, 0}, {{16, 64, 128}, 1}},
            [](const Tensor& x, int dim) { return ops::cumsum(x, dim); });
}

void add_broadcasts(Cases& all) {
  const auto add = [&](const std::string& name, const Shape& a, const Shape& b, auto function) {
    all.push_back({fmt::format("{}/{}/{}", name, dimensions(a), dimensions(b)), {a, b}, [function](const Inputs& in) {
                     return function(in[0], in[1]);
                   }});
  };
  const auto sum = [](const Tensor& a, const Tensor& b) { return ops::add(a, b); };
  add("add", {2048, 64}, {2048, 64}, sum);
  add("add", {2048, 64}, {64}, sum);
  add("add", {2048, 64}, {2048, 1}, sum);
  add("add", {12800, 10}, {10}, sum);
  add("add", {12800, 10}, {12800, 1}, sum);
  add("add", {128, 1000}, {128, 1}, sum);
  add("add", {16, 64, 128}, {16, 1, 128}, sum);
  add("sub", {2048, 1}, {64}, [](const Tensor& a, const Tensor& b) { return ops::sub(a, b); });
  add("div", {2048, 64}, {2048, 1}, [](const Tensor& a, const Tensor& b) { return ops::div(a, b); });
}

void add_movement(Cases& all) {
  const auto add = [&](const std::string& name, const Shape& x, auto function) {
    all.push_back({name + "/" + dimensions(x), {x, x}, function});
  };
  add("transpose", {1024, 512}, [](const Inputs& in) { return ops::transpose(in[0], 0, 1); });
  add("heads", {8, 128, 8, 64}, [](const Inputs& in) { return ops::permute(in[0], {0, 2, 1, 3}); });
  add("channels_first", {8, 32, 32, 64}, [](const Inputs& in) { return ops::permute(in[0], {0, 3, 1, 2}); });
  add("channels_last", {8, 64, 32, 32}, [](const Inputs& in) { return ops::permute(in[0], {0, 2, 3, 1}); });
  add("cat_first", {1024, 128}, [](const Inputs& in) { return ops::cat({in[0], in[1]}, 0); });
  add("cat_last", {1024, 128}, [](const Inputs& in) { return ops::cat({in[0], in[1]}, 1); });
  add("slice_last", {1024, 256}, [](const Inputs& in) { return ops::slice(in[0], 1, 32, 224); });
  add("index_select", {1000, 128},
      [at = random_indices({4096}, 1000)](const Inputs& in) { return ops::index_select(in[0], 0, at); });
  add("gather", {2048, 64},
      [at = random_indices({2048, 64}, 64)](const Inputs& in) { return ops::gather(in[0], 1, at); });
  add("index_add", {4096, 128},
      [at = random_indices({4096}, 1000)](const Inputs& in) { return ops::scatter_add(in[0], 0, at, 1000); });
}

void add_orders(Cases& all) {
  const std::vector<std::pair<Shape, int>> where{{{2048, 64}, 1}, {{128, 1000}, 1}, {{1, 100000}, 1}, {{1000, 128}, 0}};
  add_along(all, "sort", false, where, [](const Tensor& x, int dim) { return ops::sort(x, dim).values; });
  add_along(all, "topk", false, where, [](const Tensor& x, int dim) { return ops::topk(x, 5, dim).values; });
}

void add_samples(Cases& all) {
  const auto add = [&](const std::string& name, const Shape& x, auto function) {
    all.push_back({name + "/" + dimensions(x), {x}, function, 1});
  };
  add("unfold", {8, 32, 32, 16}, [](const Inputs& in) {
    return ops::unfold(in[0], {.window = {3, 3}, .padding = {1, 1}});
  });
  const Tensor points = ops::uniform({8, 32, 32, 2}, {.seed = 1}, {.low = -1, .high = 1});
  add("grid_sample", {8, 32, 32, 16},
      [points](const Inputs& in) { return ops::grid_sample(in[0], points.to(in[0].dtype())); });
}

void add_losses(Cases& all) {
  for (const Shape& x : {Shape{512, 1000}, Shape{12800, 10}}) {
    all.push_back({"cross_entropy/" + dimensions(x),
                   {x},
                   [at = random_indices({x[0]}, x[1])](const Inputs& in) { return ops::cross_entropy(in[0], at); },
                   1});
  }
  const auto add = [&](const std::string& name, auto function) {
    const Shape x{2048, 64};
    all.push_back(
        {name + "/" + dimensions(x), {x, x}, [function](const Inputs& in) { return function(in[0], in[1]); }, 1});
  };
  add("mse", [](const Tensor& x, const Tensor& target) { return ops::mse(x, target); });
  add("l1", [](const Tensor& x, const Tensor& target) { return ops::l1(x, target); });
  add("smooth_l1", [](const Tensor& x, const Tensor& target) { return ops::smooth_l1(x, target); });
  add("bce_with_logits",
      [](const Tensor& x, const Tensor& target) { return ops::binary_cross_entropy_with_logits(x, target); });
  add("kl_div", [](const Tensor& x, const Tensor& target) { return ops::kl_div(x, target, true); });
}

Cases cases() {
  Cases all;
  add_reductions(all);
  add_broadcasts(all);
  add_movement(all);
  add_orders(all);
  add_samples(all);
  add_losses(all);
  return all;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) { lockstep::bench::measure_all(lockstep::bench::cases(), {argv + 1, argv + argc}); }
