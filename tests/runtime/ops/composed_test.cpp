// SPDX-License-Identifier: Apache-2.0
// Products, contractions, norms, scans and softmax over a dimension.
#include <cmath>

#include "amp/autocast/autocast.h"
#include "tests/runtime/ops/operation_fixture.h"

namespace lockstep::ops {
namespace {

using ops::testing::kAllTypes;
using ops::testing::name_of_on;

class ComposedTest : public ops::testing::OperationTest {};
INSTANTIATE_TEST_SUITE_P(On, ComposedTest, kAllTypes, name_of_on);

std::vector<double> values(const Tensor& tensor) { return kernels::testing::values_of(tensor); }

TEST_P(ComposedTest, Products) {
  for (const std::int64_t m : {3, 1, 0}) {
    check([](const auto& in) { return mm(in[0], in[1]); }, {random({m, 4}, 1), random({4, 2}, 2)}, {.terms = 4});
    check([](const auto& in) { return bmm(in[0], in[1]); }, {random({m, 2, 4}, 1), random({m, 4, 3}, 2)}, {.terms = 4});
    check([](const auto& in) { return mv(in[0], in[1]); }, {random({m, 4}, 1), random({4}, 2)}, {.terms = 4});
    check([](const auto& in) { return dot(in[0], in[1]); }, {random({m}, 1), random({m}, 2)}, {.terms = 3});
    check([](const auto& in) { return vecdot(in[0], in[1]); }, {random({m, 4}, 1), random({4}, 2)}, {.terms = 4});
  }
  EXPECT_THROW(mm(random({3}, 1), random({3, 2}, 1)), ShapeError);
  EXPECT_THROW(dot(random({3}, 1), random({2}, 1)), ShapeError);
}

TEST_P(ComposedTest, ProductsWithASummand) {
  for (const AddOptions& options : {AddOptions{}, AddOptions{.beta = 0.3, .alpha = 1.7}}) {
    const ops::testing::Accuracy accuracy{.terms = 9};
    const Tensor a = random({3, 4}, 1), b = random({4, 2}, 2), v = random({4}, 3);
    check([&](const auto& in) { return addmm(in[0], in[1], in[2], options); }, {random({3, 2}, 4), a, b}, accuracy);
    check([&](const auto& in) { return addmm(in[0], in[1], in[2], options); }, {random({2}, 4), a, b}, accuracy);
    check([&](const auto& in) { return addmv(in[0], in[1], in[2], options); }, {random({3}, 4), a, v}, accuracy);
    check([&](const auto& in) { return addr(in[0], in[1], in[2], options); }, {random({3, 4}, 4), random({3}, 5), v},
          accuracy);
    const Tensor batch_a = random({2, 3, 4}, 6), batch_b = random({2, 4, 2}, 7);
    check([&](const auto& in) { return addbmm(in[0], in[1], in[2], options); }, {random({3, 2}, 4), batch_a, batch_b},
          accuracy);
    check([&](const auto& in) { return baddbmm(in[0], in[1], in[2], options); },
          {random({2, 3, 2}, 4), batch_a, batch_b}, accuracy);
  }
  const Tensor nan = kernels::testing::tensor_of({NAN}, {1}, dtype()).to(device());
  EXPECT_FALSE(
      std::isnan(addmm(nan, random({1, 2}, 1).to(device()), random({2, 1}, 2).to(device()), {.beta = 0}).item()));
}

TEST_P(ComposedTest, ChainsOfMatrices) {
  // Each product of the chain is rounded, as PyTorch's.
  const ops::testing::Accuracy accuracy{.terms = 5, .intermediate = 0.5};
  check([](const auto& in) { return chain_matmul(in); },
        {random({3, 5}, 1), random({5, 2}, 2), random({2, 4}, 3), random({4, 1}, 4)}, accuracy);
  check([](const auto& in) { return chain_matmul(in); }, {random({5}, 1), random({5, 2}, 2), random({2}, 3)}, accuracy);
  EXPECT_THROW(chain_matmul({random({3, 2}, 1), random({3, 2}, 1)}), ShapeError);
}

TEST_P(ComposedTest, Einsum) {
  struct Case {
    const char* equation;
    Shape a, b, result;
  };
  const Case cases[] = {{"ij,jk->ik", {3, 4}, {4, 2}, {3, 2}},
                        {"bij,bjk->bik", {2, 3, 4}, {2, 4, 3}, {2, 3, 3}},
                        {"ij, kj", {3, 4}, {2, 4}, {3, 2}},
                        {"bhid,bhjd->bhij", {2, 2, 3, 4}, {2, 2, 5, 4}, {2, 2, 3, 5}},
                        {"i,j->ji", {3}, {2}, {2, 3}},
                        {"i,i->", {3}, {3}, {}},
                        {"ijk,kl->jl", {2, 3, 4}, {4, 2}, {3, 2}},
                        {"ij,kj->i", {3, 4}, {2, 4}, {3}},
                        {"ib,bj->bji", {3, 2}, {2, 4}, {2, 4, 3}},
                        {"ij,ij->ij", {3, 4}, {3, 4}, {3, 4}},
                        {"ij,->ji", {3, 4}, {}, {4, 3}},
                        {"ij,jk->ik", {3, 0}, {0, 2}, {3, 2}},
                        {"...ij,...jk->...ik", {2, 1, 3, 4}, {5, 4, 2}, {2, 5, 3, 2}},
                        {"i...,ij", {3, 2}, {3, 4}, {2, 4}},
                        {"...i,...i", {2, 3}, {3}, {2}},
                        {"...,...->...", {2, 3}, {3}, {2, 3}},
                        {"i...,i->", {3, 2}, {3}, {}},
                        {"...j,jk->k...", {2, 3, 4}, {4, 2}, {2, 2, 3}},
                        {"ii,ij->ij", {3, 3}, {3, 2}, {3, 2}},
                        {"ii,i", {3, 3}, {3}, {}},
                        {"iji,jk->k", {2, 3, 2}, {3, 4}, {4}},
                        {"iii,ji->ij", {2, 2, 2}, {3, 2}, {2, 3}},
                        {"...ii,...->...i", {2, 3, 3}, {2}, {2, 3}},
                        {"ii,ij->j", {0, 0}, {0, 2}, {2}},
                        {"ij,ij->ij", {3, 1}, {1, 4}, {3, 4}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.equation);
    const Tensor a = random(c.a, 1), b = random(c.b, 2);
    EXPECT_EQ(einsum(c.equation, a, b).shape(), c.result);
    check([&](const auto& in) { return einsum(c.equation, in[0], in[1]); }, {a, b}, {.terms = 12});
  }
  const Tensor a = random({3, 3}, 1);
  for (const char* bad : {"...i...,ij->j", "ijk...,ij->j", "..i,ij->j", "ij,jk,kl->il", "ij->ji", "ij,jk->iz",
                          "i,jk->ik", "ij,jk->ii", "1j,jk"}) {
    EXPECT_THROW(einsum(bad, a, a), UsageError) << bad;
  }
  EXPECT_THROW(einsum("ij,jk->ik", a, random({2, 3}, 1)), ShapeError);
  EXPECT_THROW(einsum("ii,ij->j", random({3, 1}, 1), a), ShapeError);
  EXPECT_THROW(einsum("...i,...i", a, random({2, 3}, 1)), ShapeError);
}

TEST_P(ComposedTest, EinsumOfAnyNumberOfOperands) {
  struct Case {
    const char* equation;
    std::vector<Shape> shapes;
    Shape result;
  };
  const Case cases[] = {{"ij,jk,kl->il", {{3, 4}, {4, 2}, {2, 5}}, {3, 5}},
                        {"bi,bj,bk->bijk", {{2, 3}, {2, 2}, {2, 4}}, {2, 3, 2, 4}},
                        {"i,i,i", {{4}, {4}, {4}}, {}},
                        {"ij,k,jk->i", {{3, 4}, {2}, {4, 2}}, {3}},
                        {"...i,ij,...j->...", {{2, 3}, {3, 4}, {4}}, {2}},
                        {"ij,jk,kl,lm->im", {{2, 3}, {3, 2}, {2, 3}, {3, 2}}, {2, 2}},
                        {"ij->ji", {{3, 4}}, {4, 3}},
                        {"iij->j", {{3, 3, 4}}, {4}},
                        {"...i->...", {{2, 3, 4}}, {2, 3}},
                        {"ij", {{3, 4}}, {3, 4}},
                        {"ii", {{3, 3}}, {}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.equation);
    std::vector<Tensor> operands;
    for (const Shape& shape : c.shapes) operands.push_back(random(shape, 1 + static_cast<unsigned>(operands.size())));
    EXPECT_EQ(einsum(c.equation, operands).shape(), c.result);
    // Each product is rounded once.
    check([&](const auto& in) { return einsum(c.equation, std::vector<Tensor>(in.begin(), in.end())); }, operands,
          {.terms = 16, .intermediate = 24, .intermediate_of_result = 12});
  }
  const Tensor a = random({3, 3}, 1);
  EXPECT_THROW(einsum("ij,jk", {a, a, a}), UsageError);
  EXPECT_THROW(einsum("ij", std::vector<Tensor>()), UsageError);
  EXPECT_THROW(einsum("ij,jk,kl", {a, a, random({2, 3}, 1)}), ShapeError);
}

TEST_P(ComposedTest, Bilinear) {
  const Tensor weight = random({2, 3, 4}, 3), bias = random({2}, 4);
  for (const Shape& rows : {Shape{5}, Shape{2, 1}, Shape{0}, Shape{}}) {
    const auto of = [&](std::int64_t channels, std::uint32_t seed) {
      std::vector<std::int64_t> extents(rows.extents().begin(), rows.extents().end());
      extents.push_back(channels);
      return random(Shape(extents), seed);
    };
    check([](const auto& in) { return bilinear(in[0], in[1], in[2], in[3]); }, {of(3, 1), of(4, 2), weight, bias},
          {.terms = 13});
    check([](const auto& in) { return bilinear(in[0], in[1], in[2]); }, {of(3, 1), of(4, 2), weight}, {.terms = 12});
  }
  EXPECT_THROW(bilinear(random({5, 3}, 1), random({5, 3}, 2), weight), ShapeError);
}

TEST_P(ComposedTest, DistancesOfTensors) {
  const Tensor a = random({3, 4}, 1), b = random({4}, 2);
  for (const double order : {1.0, 2.0, 3.0}) {
    check([order](const auto& in) { return dist(in[0], in[1], order); }, {a, b}, {.terms = 12});
  }
  check([](const auto& in) { return vdot(in[0], in[1]); }, {b, random({4}, 3)}, {.terms = 4});
}

TEST_P(ComposedTest, DistancesOfRows) {
  for (const double order : {1.0, 2.0, 3.0}) {
    check([order](const auto& in) { return cdist(in[0], in[1], order); }, {random({2, 3, 4}, 1), random({5, 4}, 2)},
          {.terms = 12});
    check([order](const auto& in) { return pdist(in[0], order); }, {random({4, 3}, 1)}, {.terms = 9});
  }
  const Tensor x = random({3, 4}, 1);
  EXPECT_EQ(cdist(x, random({0, 4}, 2)).shape(), Shape({3, 0}));
  EXPECT_EQ(pdist(random({1, 4}, 2)).shape(), Shape({0}));
  EXPECT_THROW(cdist(x, random({5, 3}, 2)), ShapeError);
  EXPECT_THROW(cdist(x, random({4}, 2)), ShapeError);
  EXPECT_THROW(cdist(x, x, -1), UsageError);
  EXPECT_THROW(pdist(random({2, 3, 4}, 2)), ShapeError);
  EXPECT_THROW(pdist(x, -kInfinite), UsageError);
}

// The root has an infinite slope there.
TEST_P(ComposedTest, ADistanceOf0HasAGradientOf0) {
  for (const double order : {1.0, 2.0, 3.0, 0.5, kInfinite}) {
    SCOPED_TRACE(order);
    const Tensor x = random({1, 3}, 1);
    x.set_requires_grad(true);
    sum(cdist(x, x.detach(), order)).backward();
    EXPECT_EQ(values(x.grad()), std::vector<double>(3, 0.0));
    sum(pdist(cat({x, x}, 0), order)).backward();
    EXPECT_EQ(values(x.grad()), std::vector<double>(3, 0.0));
  }
}

TEST_P(ComposedTest, RenormShortensWhatIsTooLong) {
  for (const double order : {1.0, 2.0, 3.0}) {
    check([order](const auto& in) { return renorm(in[0], order, 1, 2.5); }, {random({3, 4, 2}, 1)}, {.terms = 6});
  }
  const Tensor x = random({3, 4}, 1, 0.1, 0.2);
  EXPECT_EQ(renorm(x, 2, 0, 5).item(7), x.item(7));
  EXPECT_THROW(renorm(x, 0, 0, 1), UsageError);
  EXPECT_THROW(renorm(x, 2, 0, -1), UsageError);
  EXPECT_THROW(renorm(x, 2, 2, 1), ShapeError);
  EXPECT_THROW(renorm(random({3}, 1), 2, 0, 1), ShapeError);
}

TEST_P(ComposedTest, Tensordot) {
  check([](const auto& in) { return tensordot(in[0], in[1], 2); }, {random({2, 3, 4}, 1), random({3, 4, 2}, 2)},
        {.terms = 12});
  check(
      [](const auto& in) {
        return tensordot(in[0], in[1], {2, 0}, {0, -1});
      },
      {random({2, 3, 4}, 1), random({4, 3, 2}, 2)}, {.terms = 8});
  check([](const auto& in) { return tensordot(in[0], in[1], 0); }, {random({2}, 1), random({3}, 2)}, {.terms = 3});
  EXPECT_THROW(tensordot(random({2, 3}, 1), random({2, 3}, 1), 1), ShapeError);
}

TEST_P(ComposedTest, LogSumExp) {
  for (const Shape& shape : {Shape{5, 3, 4}, Shape{1, 3, 1}}) {
    for (const Dims& dims : {Dims(1), Dims({0, 2}), Dims(-1), Dims({})}) {
      check([&](const auto& in) { return logsumexp(in[0], dims); }, {random(shape, 1, -3, 3)}, {.terms = 60});
    }
  }
  const double inf = INFINITY;
  const Tensor x = kernels::testing::tensor_of({30000, 30000, -inf, -inf, inf, 0}, {3, 2}, dtype()).to(device());
  const Tensor y = logsumexp(x, 1);
  kernels::testing::expect_close(y, std::vector<double>{30000 + std::log(2.0), -inf, inf}, {.relative = 0.01});
  EXPECT_EQ(logsumexp(Tensor::zeros({2, 0}, dtype(), device()), 1).item(), -INFINITY);
}

TEST_P(ComposedTest, VectorNorms) {
  for (const Shape& shape : {Shape{5, 3, 4}, Shape{1, 3, 1}}) {
    const Tensor x = random(shape, 1);
    for (const Dims& dims : {Dims(1), Dims({0, 2}), Dims(-1), Dims({})}) {
      for (const double order : {2.0, 1.0, static_cast<double>(INFINITY), -static_cast<double>(INFINITY), 3.0}) {
        check([&](const auto& in) { return vector_norm(in[0], order, dims); }, {x}, {.terms = 60});
      }
    }
  }
  const Tensor x = kernels::testing::tensor_of({3, 4, 0, 0}, {2, 2}, dtype()).to(device());
  EXPECT_EQ(values(vector_norm(x, 2, -1)), (std::vector<double>{5, 0}));
  EXPECT_EQ(values(vector_norm(x, 0, -1)), (std::vector<double>{2, 0}));
  x.set_requires_grad(true);
  const Tensor dx = autograd::grad(sum(vector_norm(x, 2, -1)), {x})[0];
  EXPECT_EQ(dx.item(2), 0);
  kernels::testing::expect_close(dx, std::vector<double>{0.6, 0.8, 0, 0}, {.relative = 0.01});
}

TEST_P(ComposedTest, MatrixNorms) {
  for (const MatrixNorm norm : {MatrixNorm::kFrobenius, MatrixNorm::kOne, MatrixNorm::kInfinity}) {
    check([&](const auto& in) { return matrix_norm(in[0], norm); }, {random({2, 3, 4}, 1)}, {.terms = 12});
  }
  EXPECT_THROW(matrix_norm(random({3}, 1)), ShapeError);
}

TEST_P(ComposedTest, CosineSimilarity) {
  check([](const auto& in) { return cosine_similarity(in[0], in[1]); }, {random({3, 4, 2}, 1), random({3, 4, 2}, 2)},
        {.terms = 4});
  check([](const auto& in) { return cosine_similarity(in[0], in[1], -1); }, {random({3, 4}, 1), random({4}, 2)},
        {.terms = 12});
  EXPECT_EQ(cosine_similarity(Tensor::zeros({1, 2}, dtype()), random({1, 2}, 1)).item(), 0);
  // Broadcast along the dimension itself, too.
  for (const auto& [one, other] : {std::pair(Shape{3, 1}, Shape{3, 4}), {{2, 1, 3}, {2, 4, 3}}, {{4}, {3, 4}}}) {
    const Tensor a = random(one, 1, 0.5, 1), b = random(other, 2);
    check([](const auto& in) { return cosine_similarity(in[0], in[1]); }, {a, b}, {.terms = 12});
    EXPECT_EQ(values(cosine_similarity(a, b)), values(cosine_similarity(expand(a, other), b)));
  }
}

TEST_P(ComposedTest, RunningSumsAndProducts) {
  for (const Shape& shape : {Shape{5, 3, 4}, Shape{1, 3, 1}, Shape{2, 0, 3}}) {
    const Tensor x = random(shape, 1);
    for (const int dim : {0, 1, -1}) {
      check([&](const auto& in) { return cumsum(in[0], dim); }, {x}, {.terms = 5});
      check([&](const auto& in) { return cumprod(in[0], dim); }, {x}, {.terms = 25});
      check([&](const auto& in) { return prod(in[0], dim); }, {x}, {.terms = 5});
      check([&](const auto& in) { return recurrence(in[0], in[1], dim, true); }, {x, random(shape, 2)}, {.terms = 25});
    }
  }
  check([](const auto& in) { return prod(in[0]); }, {random({2, 3}, 1)}, {.terms = 6});
}

TEST_P(ComposedTest, ProductsOfIntegersAreIntegers) {
  const Tensor x = Tensor::from<std::int64_t>({3, -2, 4, 5}, {2, 2}).to(device());
  for (const Tensor& whole : {cumsum(x, 1), cumprod(x, 1), prod(x, 1), prod(x)}) {
    EXPECT_EQ(whole.dtype(), DType::kInt64);
  }
  EXPECT_EQ(values(cumsum(x, 1)), (std::vector<double>{3, 1, 4, 9}));
  EXPECT_EQ(values(cumprod(x, 0)), (std::vector<double>{3, -2, 12, -10}));
  EXPECT_EQ(values(prod(x, 1, {.keepdim = true})), (std::vector<double>{-6, 20}));
  EXPECT_EQ(prod(x).item(), -120);
  EXPECT_EQ(prod(x, dtype()).dtype(), dtype());
}

TEST_P(ComposedTest, ProductsOfZeros) {
  for (const std::vector<double>& numbers : {std::vector<double>{2, 0, 3, 4}, {0, 2, 0, 3}}) {
    const Tensor x = kernels::testing::tensor_of(numbers, {4}, dtype());
    check([](const auto& in) { return prod(in[0], 0); }, {x}, {.terms = 4});
    check([](const auto& in) { return cumprod(in[0], 0); }, {x}, {.terms = 4});
  }
}

TEST_P(ComposedTest, SoftmaxOverADimension) {
  // The backward pass reads the rounded output, which PyTorch keeps too.
  for (const int dim : {0, 1, -1}) {
    check([&](const auto& in) { return softmax(in[0], dim); }, {random({5, 3, 4}, 1, -3, 3)},
          {.terms = 5, .intermediate = 0.5});
    check([&](const auto& in) { return log_softmax(in[0], dim); }, {random({5, 3, 4}, 1, -3, 3)},
          {.terms = 5, .intermediate = 1.5});
  }
  EXPECT_EQ(softmax(random({}, 1), 0).item(), 1);
}

TEST_P(ComposedTest, StandardDeviation) {
  check([](const auto& in) { return std(in[0], 1); }, {random({3, 5}, 1)}, {.terms = 5});
  const Tensor x = kernels::testing::tensor_of({2, 2, 2}, {1, 3}, dtype());
  x.set_requires_grad(true);
  EXPECT_EQ(values(autograd::grad(sum(std(x, 1)), {x})[0]), (std::vector<double>{0, 0, 0}));
}

/// The squares of both lie outside float16's range.
TEST_P(ComposedTest, StandardDeviationWhoseSquareTheDTypeDoesNotHold) {
  for (const double size : {600.0, 2e-4}) {
    const Tensor x = kernels::testing::tensor_of({0, size}, {1, 2}, dtype()).to(device());
    x.set_requires_grad(true);
    const double half = std::sqrt(0.5);
    const Tensor y = std(x, 1);
    EXPECT_EQ(y.dtype(), dtype());
    kernels::testing::expect_close(y, std::vector<double>{half * x.item(1)}, {.relative = 0.01});
    for (const bool create_graph : {false, true}) {
      const Tensor dx = autograd::grad(std(x, 1), {x}, {}, {.create_graph = create_graph})[0];
      kernels::testing::expect_close(dx, std::vector<double>{-half, half}, {.relative = 0.01});
    }
  }
}

TEST_P(ComposedTest, MaskedFill) {
  const Tensor mask = kernels::testing::tensor_of({0, 1, 0, 1}, {4}, DType::kBool);
  check([&](const auto& in) { return masked_fill(in[0], mask.to(in[0].device()), -2); }, {random({3, 4}, 1)});
}

/// The dtype of a result under autocast is its policy's; a named dtype overrides it.
TEST(Composed, DtypesUnderAutocast) {
  const Tensor matrix = kernels::testing::random_tensor({4, 4}, DType::kFloat32, 1), vector = matrix.reshaped({16}),
               batch = matrix.reshaped({1, 4, 4}), half = Tensor::zeros({4, 4}, DType::kFloat16),
               row = matrix.rows(0, 1).reshaped({4});
  const amp::Autocast autocast(DType::kFloat16);
  for (const Tensor& lower :
       {mm(matrix, matrix), bmm(batch, batch), mv(matrix, row), vecdot(matrix, matrix), addmm(matrix, matrix, matrix),
        addmv(row, matrix, row), addr(matrix, row, row), addbmm(matrix, batch, batch), baddbmm(batch, batch, batch),
        chain_matmul({matrix, matrix, matrix}), einsum("ij,jk->ik", matrix, matrix),
        einsum("ij,kl->k", matrix, matrix)}) {
    EXPECT_EQ(lower.dtype(), DType::kFloat16);
  }
  const Tensor half_row = half.rows(0, 1).reshaped({4});
  for (const Tensor& wide :
       {dot(row, half_row), tensordot(matrix, half, 1), logsumexp(half, 0), cosine_similarity(half, half),
        prod(half, 0), softmax(half, 0), log_softmax(half, 1), cumsum(half, 0), cumprod(half, 0), vector_norm(half),
        matrix_norm(half), sum(half, 0), sum(half)}) {
    EXPECT_EQ(wide.dtype(), DType::kFloat32);
  }
  for (const Tensor& same : {dot(half_row, half_row), mean(half, 0), var(half, 0), std(half, 0), amax(half, 0),
                             permute(half, {1, 0}), cat({half, half}), slice(half, 0, 0, 2)}) {
    EXPECT_EQ(same.dtype(), DType::kFloat16);
  }
  constexpr DType kNamed = DType::kBFloat16;
  for (const Tensor& named :
       {sum(matrix, 0, {.dtype = kNamed}), prod(matrix, 0, {.dtype = kNamed}), cumsum(matrix, 0, kNamed),
        cumprod(matrix, 0, kNamed), softmax(matrix, 0, kNamed), log_softmax(matrix, 1, kNamed),
        vector_norm(matrix, 2, {}, {.dtype = kNamed}), matrix_norm(matrix, MatrixNorm::kOne, {.dtype = kNamed})}) {
    EXPECT_EQ(named.dtype(), kNamed);
  }
}

}  // namespace
}  // namespace lockstep::ops
