// SPDX-License-Identifier: Apache-2.0
// Movement, reductions, products, norms and scans: results, gradients, and gradients of these.
#include <functional>
#include <limits>

#include "runtime/autograd/engine.h"
#include "runtime/ops/ops.h"
#include "tests/golden/golden_fixture.h"

namespace lockstep::kernels {
namespace {

using Tensors = std::vector<Tensor>;
using Cases = std::map<std::string, std::function<Tensor(const Tensors&)>>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr ops::AddOptions kAdd{.beta = 0.5, .alpha = 2};

Tensor on(const Tensor& model, const std::vector<std::int64_t>& indices, const Shape& shape) {
  return Tensor::from(indices, shape).to(model.device());
}

const Cases kMovementCases{{"permute",
                            [](const Tensors& x) {
                              return ops::permute(x[0], {2, 0, 1});
                            }},
                           {"flip",
                            [](const Tensors& x) {
                              return ops::flip(x[0], {0, 2});
                            }},
                           {"expand",
                            [](const Tensors& x) {
                              return ops::expand(x[0], {2, 3, 4});
                            }},
                           {"sum_to",
                            [](const Tensors& x) {
                              return ops::sum_to(x[0], {3, 1});
                            }},
                           {"repeat",
                            [](const Tensors& x) {
                              return ops::repeat(x[0], {2, 1, 3});
                            }},
                           {"cat", [](const Tensors& x) { return ops::cat(x, 1); }},
                           {"stack", [](const Tensors& x) { return ops::stack(x, -1); }},
                           {"slice", [](const Tensors& x) { return ops::slice(x[0], 1, 1, 7, 2); }},
                           {"select", [](const Tensors& x) { return ops::select(x[0], 1, -2); }},
                           {"index_select",
                            [](const Tensors& x) {
                              return ops::index_select(x[0], 1, on(x[0], {2, 0, 2, 1}, {4}));
                            }},
                           {"gather", [](const Tensors& x) {
                              return ops::gather(x[0], 1, on(x[0], {2, 0, 2, 1, 1, 1, 0, 0}, {2, 4}));
                            }}};

const Cases kReductionCases{{"sum",
                             [](const Tensors& x) {
                               return ops::sum(x[0], {0, 2}, {.keepdim = true});
                             }},
                            {"sum_of_nothing", [](const Tensors& x) { return ops::sum(x[0], 1); }},
                            {"mean", [](const Tensors& x) { return ops::mean(x[0], 1); }},
                            {"var",
                             [](const Tensors& x) {
                               return ops::var(x[0], {0, 2});
                             }},
                            {"var_of_the_whole", [](const Tensors& x) { return ops::var(x[0], 1, {.correction = 0}); }},
                            {"std", [](const Tensors& x) { return ops::std(x[0], -1); }},
                            {"max", [](const Tensors& x) { return ops::max(x[0], 1).values; }},
                            {"min", [](const Tensors& x) { return ops::min(x[0], 0).values; }},
                            {"amax", [](const Tensors& x) { return ops::amax(x[0], 1); }},
                            {"amin",
                             [](const Tensors& x) {
                               return ops::amin(x[0], {0, 1});
                             }},
                            {"logsumexp",
                             [](const Tensors& x) {
                               return ops::logsumexp(x[0], {0, 2});
                             }},
                            {"prod", [](const Tensors& x) { return ops::prod(x[0], 1); }},
                            {"prod_of_zeros", [](const Tensors& x) { return ops::prod(x[0], 1); }},
                            {"cumsum", [](const Tensors& x) { return ops::cumsum(x[0], 1); }},
                            {"cumprod", [](const Tensors& x) { return ops::cumprod(x[0], 1); }},
                            {"cumprod_of_zeros", [](const Tensors& x) { return ops::cumprod(x[0], 1); }},
                            {"softmax", [](const Tensors& x) { return ops::softmax(x[0], 1); }},
                            {"log_softmax", [](const Tensors& x) { return ops::log_softmax(x[0], 0); }}};

const Cases kNormCases{
    {"two",
     [](const Tensors& x) {
       return ops::vector_norm(x[0], 2, {0, 2});
     }},
    {"one", [](const Tensors& x) { return ops::vector_norm(x[0], 1, 1); }},
    {"three", [](const Tensors& x) { return ops::vector_norm(x[0], 3, 1); }},
    {"infinity", [](const Tensors& x) { return ops::vector_norm(x[0], kInfinity, 1); }},
    {"frobenius", [](const Tensors& x) { return ops::matrix_norm(x[0]); }},
    {"matrix_one", [](const Tensors& x) { return ops::matrix_norm(x[0], ops::MatrixNorm::kOne); }},
    {"matrix_infinity", [](const Tensors& x) { return ops::matrix_norm(x[0], ops::MatrixNorm::kInfinity); }},
    {"cosine_similarity", [](const Tensors& x) { return ops::cosine_similarity(x[0], x[1], 1); }}};

const Cases kProductCases{{"mm", [](const Tensors& x) { return ops::mm(x[0], x[1]); }},
                          {"bmm", [](const Tensors& x) { return ops::bmm(x[0], x[1]); }},
                          {"mv", [](const Tensors& x) { return ops::mv(x[0], x[1]); }},
                          {"dot", [](const Tensors& x) { return ops::dot(x[0], x[1]); }},
                          {"vecdot", [](const Tensors& x) { return ops::vecdot(x[0], x[1]); }},
                          {"addmm", [](const Tensors& x) { return ops::addmm(x[0], x[1], x[2], kAdd); }},
                          {"addmv", [](const Tensors& x) { return ops::addmv(x[0], x[1], x[2], kAdd); }},
                          {"addr", [](const Tensors& x) { return ops::addr(x[0], x[1], x[2], kAdd); }},
                          {"addbmm", [](const Tensors& x) { return ops::addbmm(x[0], x[1], x[2], kAdd); }},
                          {"baddbmm", [](const Tensors& x) { return ops::baddbmm(x[0], x[1], x[2], kAdd); }},
                          {"chain_matmul", [](const Tensors& x) { return ops::chain_matmul(x); }},
                          {"einsum", [](const Tensors& x) { return ops::einsum("bik,ckj->jbi", x[0], x[1]); }},
                          {"tensordot", [](const Tensors& x) {
                             return ops::tensordot(x[0], x[1], {2, 0}, {0, 2});
                           }}};

Cases::value_type einsum(const std::string& name, const std::string& equation) {
  return {name, [equation](const Tensors& x) { return ops::einsum(equation, x[0], x[1]); }};
}

const Cases kContractionCases{einsum("ellipsis", "...ij,j...k->i...k"),
                              einsum("ellipsis_without_arrow", "j...,kj"),
                              einsum("ellipsis_summed", "...i,i->i"),
                              einsum("broadcast", "...ij,...jk"),
                              einsum("diagonal", "iji,jk->ki"),
                              einsum("trace", "ii,j"),
                              {"vdot", [](const Tensors& x) { return ops::vdot(x[0], x[1]); }},
                              {"dist", [](const Tensors& x) { return ops::dist(x[0], x[1], 3); }},
                              {"bilinear", [](const Tensors& x) { return ops::bilinear(x[0], x[1], x[2], x[3]); }}};

const Cases kDistanceCases{{"cdist", [](const Tensors& x) { return ops::cdist(x[0], x[1]); }},
                           {"cdist_of_order_1", [](const Tensors& x) { return ops::cdist(x[0], x[1], 1); }},
                           {"cdist_of_order_3", [](const Tensors& x) { return ops::cdist(x[0], x[1], 3); }},
                           {"pdist", [](const Tensors& x) { return ops::pdist(x[0]); }},
                           {"renorm", [](const Tensors& x) { return ops::renorm(x[0], 2, 0, 1.5); }},
                           {"renorm_of_order_1", [](const Tensors& x) { return ops::renorm(x[0], 1, 1, 2); }}};

Cases::value_type adaptive(const std::string& name, const Shape& extents) {
  const auto pool = name.starts_with("max") ? ops::adaptive_max_pool : ops::adaptive_average_pool;
  return {name, [pool, extents](const Tensors& x) { return pool(x[0], extents); }};
}

const Cases kAdaptiveCases{adaptive("average", {2, 3}),
                           adaptive("average_of_a_line", {3}),
                           adaptive("average_of_a_volume", {2, 2, 1}),
                           adaptive("average_evenly", {2, 3}),
                           adaptive("average_to_more", {5}),
                           adaptive("max", {2, 3}),
                           adaptive("max_of_a_volume", {2, 2, 1}),
                           adaptive("max_evenly", {2, 3})};

const Cases kOrderCases{{"sort", [](const Tensors& x) { return ops::sort(x[0], 1).values; }},
                        {"sort_descending", [](const Tensors& x) { return ops::sort(x[0], 0, true).values; }},
                        {"topk", [](const Tensors& x) { return ops::topk(x[0], 2, 1).values; }},
                        {"topk_of_the_smallest", [](const Tensors& x) { return ops::topk(x[0], 3, 0, false).values; }}};

const Cases kPutCases{{"rows",
                       [](const Tensors& x) {
                         return ops::index_put(x[0], {on(x[0], {2, 0}, {2})}, x[1]);
                       }},
                      {"elements",
                       [](const Tensors& x) {
                         return ops::index_put(x[0], {on(x[0], {2, -3}, {2, 1}), on(x[0], {1, -1}, {2})}, x[1]);
                       }},
                      {"accumulate", [](const Tensors& x) {
                         return ops::index_put(x[0], {on(x[0], {2, 0, 2}, {3})}, x[1], true);
                       }}};

const Cases kWindowCases{
    {"unfold", [](const Tensors& x) { return ops::unfold(x[0], 1, 3, 2); }},
    {"im2col", [](const Tensors& x) {
       return ops::unfold(x[0], {.window = {2, 3}, .stride = {2, 1}, .padding = {1, 1}, .dilation = {1, 2}});
     }}};

Cases::value_type sampled(const std::string& name, ops::GridMode mode,
                          ops::GridPadding padding = ops::GridPadding::kZeros, bool align_corners = false) {
  return {name, [=](const Tensors& x) { return ops::grid_sample(x[0], x[1], {mode, padding, align_corners}); }};
}

const Cases kGridCases{
    sampled("linear", ops::GridMode::kLinear),
    sampled("linear_aligned", ops::GridMode::kLinear, ops::GridPadding::kZeros, true),
    sampled("linear_border", ops::GridMode::kLinear, ops::GridPadding::kBorder),
    sampled("linear_reflection", ops::GridMode::kLinear, ops::GridPadding::kReflection),
    sampled("linear_reflection_aligned", ops::GridMode::kLinear, ops::GridPadding::kReflection, true),
    sampled("nearest", ops::GridMode::kNearest),
    sampled("nearest_reflection", ops::GridMode::kNearest, ops::GridPadding::kReflection, true),
    sampled("cubic", ops::GridMode::kCubic),
    sampled("cubic_border", ops::GridMode::kCubic, ops::GridPadding::kBorder, true),
    sampled("cubic_reflection", ops::GridMode::kCubic, ops::GridPadding::kReflection),
    sampled("volume", ops::GridMode::kLinear)};

Cases::value_type padding(const std::string& name, ops::PadMode mode) {
  return {name, [mode](const Tensors& x) { return ops::pad(x[0], -1, 2, 1, {.mode = mode, .value = 0.5}); }};
}

const Cases kCompositionCases{{"index",
                               [](const Tensors& x) {
                                 return x[0](1, ops::Ellipsis{}, ops::Slice{0, 3, 2}, ops::NewAxis{});
                               }},
                              {"roll", [](const Tensors& x) { return ops::roll(x[0], -2, 1); }},
                              padding("pad_constant", ops::PadMode::kConstant),
                              padding("pad_reflect", ops::PadMode::kReflect),
                              padding("pad_replicate", ops::PadMode::kReplicate),
                              padding("pad_circular", ops::PadMode::kCircular),
                              {"tril", [](const Tensors& x) { return ops::tril(x[0], 1); }},
                              {"triu", [](const Tensors& x) { return ops::triu(x[0], -1); }},
                              {"glu", [](const Tensors& x) { return ops::glu(x[0]); }},
                              {"cross", [](const Tensors& x) { return ops::cross(x[0], x[1], 0); }},
                              {"einsum_of_one", [](const Tensors& x) { return ops::einsum("iij->j", x); }},
                              {"einsum_of_three", [](const Tensors& x) { return ops::einsum("bi,ij...,b->j...", x); }}};

class GoldenStructure : public GoldenTest {
 protected:
  void expect_all(const std::string& group, const Cases& cases, bool twice = true) const {
    const ScopedBackend computer(device() == kCpu ? backend() : kernels::backend(kCpu));
    const json& stored_cases = golden("structure").at(group);
    ASSERT_EQ(stored_cases.size(), cases.size());
    for (const auto& [name, function] : cases) {
      SCOPED_TRACE(name);
      const json& stored = stored_cases.at(name);
      Tensors inputs;
      for (const json& input : stored["inputs"]) {
        inputs.push_back(read(input));
        inputs.back().set_requires_grad(true);
      }
      const Tensor y = function(inputs);
      const Sums sums = Sums::over(inputs);
      expect(y, stored["y"], sums);
      const Tensor dy = read(stored["dy"]);
      const auto first = autograd::grad(y, inputs, dy, {.retain_graph = true});
      for (std::size_t i = 0; i < inputs.size(); ++i) expect(first[i], stored["gradients"][i], sums);
      if (twice && stored.contains("second")) expect_second(y, dy, inputs, stored);
    }
  }

 private:
  void expect_second(const Tensor& y, const Tensor& dy, const Tensors& inputs, const json& stored) const {
    const auto gradients = autograd::grad(y, inputs, dy, {.create_graph = true});
    Tensor squares;
    for (const Tensor& gradient : gradients) {
      if (!gradient.requires_grad()) continue;
      const Tensor square = ops::sum(ops::mul(gradient, gradient));
      squares = squares.defined() ? ops::add(squares, square) : square;
    }
    const Sums sums = Sums::over(inputs).twice().twice();  // the squares, too, are added up
    std::vector<Tensor> second(inputs.size());
    if (squares.defined()) second = autograd::grad(squares, inputs, {}, {.allow_unused = true});
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      expect(second[i].defined() ? second[i] : ops::zeros_like(inputs[i]), stored["second"][i], sums);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenStructure, ::testing::ValuesIn(kComputers), name_of_computer);

TEST_P(GoldenStructure, MovementIsPyTorchs) { expect_all("movement", kMovementCases); }
TEST_P(GoldenStructure, ReductionsArePyTorchs) { expect_all("reduction", kReductionCases); }
TEST_P(GoldenStructure, NormsArePyTorchs) { expect_all("norm", kNormCases); }
TEST_P(GoldenStructure, ProductsArePyTorchs) { expect_all("product", kProductCases); }
TEST_P(GoldenStructure, ContractionsArePyTorchs) { expect_all("contraction", kContractionCases); }
TEST_P(GoldenStructure, DistancesArePyTorchs) { expect_all("distance", kDistanceCases); }
TEST_P(GoldenStructure, AdaptivePoolsArePyTorchs) { expect_all("adaptive", kAdaptiveCases); }
TEST_P(GoldenStructure, OrdersArePyTorchs) { expect_all("order", kOrderCases); }
TEST_P(GoldenStructure, PutValuesArePyTorchs) { expect_all("put", kPutCases); }
TEST_P(GoldenStructure, WindowsArePyTorchs) { expect_all("window", kWindowCases); }
TEST_P(GoldenStructure, SamplesAtPointsArePyTorchs) { expect_all("grid", kGridCases); }
TEST_P(GoldenStructure, CompositionsArePyTorchs) { expect_all("composition", kCompositionCases); }

}  // namespace
}  // namespace lockstep::kernels
