// SPDX-License-Identifier: Apache-2.0
// Movement, reductions over dimensions, scans and indexing against the reference.
#include <algorithm>
#include <cmath>

#include "runtime/kernels/dim_reductions.h"
#include "runtime/kernels/elementwise.h"
#include "runtime/kernels/indexing.h"
#include "runtime/kernels/movement.h"
#include "runtime/kernels/scans.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class StructureLoops : public KernelTest<DimReductions, Indexing, Movement, Scans> {};
INSTANTIATE_TEST_SUITE_P(On, StructureLoops, kFastTypes, name_of_on);

/// [outer, n, inner]: lines, short and long, alone and in groups; columns, narrow, wide and ragged; cut into pieces;
/// nothing.
const Shape kMiddles[] = {{1, 1, 1},   {3, 7, 1},   {2, 1300, 1}, {1, 200000, 1}, {300, 5, 1},   {2, 9, 3},
                          {1, 700, 3}, {2, 33, 70}, {3, 5, 513},  {1, 3, 2100},   {1, 9001, 17}, {0, 3, 2},
                          {2, 3, 0},   {35, 31, 1}, {6, 40, 1},   {7, 129, 1},    {4, 12, 64},   {2, 20, 128}};

TEST_P(StructureLoops, SumsMatchTheReference) {
  for (const Shape& shape : kMiddles) {
    SCOPED_TRACE(shape.str());
    const Tensor x = random(shape, 1);
    for (const Term term : {Term::kValue, Term::kAbsolute, Term::kSquare}) {
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor same = on.empty({shape[0], shape[2]}), wide = on.empty(same.shape(), DType::kFloat32);
            on->sum_dim(on(x), term, 0.25, same);
            on->sum_dim(on(x), term, 0.25, wide);
            return std::vector{same, wide};
          },
          bounds(300));
    }
  }
}

TEST_P(StructureLoops, VariancesMatchTheReference) {
  for (const Shape& shape : kMiddles) {
    if (shape[1] < 2) continue;
    SCOPED_TRACE(shape.str());
    const Tensor x = random(shape, 1, 2, 3);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor variance = on.empty({shape[0], shape[2]});
          on->variance_dim(on(x), static_cast<double>(shape[1]), variance);
          return std::vector{variance};
        },
        bounds(10));
  }
}

TEST_P(StructureLoops, ExtremesAreTheReferences) {
  for (const Shape& shape : kMiddles) {
    SCOPED_TRACE(shape.str());
    // Few different values, so that there are equal ones.
    const Tensor numbers = random_tensor(shape, DType::kFloat32, 1, -40, 40),
                 whole = Tensor::empty(shape, DType::kInt64);
    reference_of<Elementwise>().cast(numbers, whole);
    const Tensor x = Tensor::empty(shape, dtype());
    reference_of<Elementwise>().cast(whole, x);
    for (const Extreme which : {Extreme::kLargest, Extreme::kSmallest}) {
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor values = on.empty({shape[0], shape[2]}), alone = on.empty(values.shape()),
                         indices = on.empty(values.shape(), DType::kInt64), shares = on.empty(shape);
            on->extreme_dim(on(x), which, values, indices);
            on->extreme_dim(on(x), which, alone, {});
            on->extreme_shares(on(x), values, shares);
            return std::vector{values, alone, indices, shares};
          },
          {.relative = epsilon_of(dtype())});
    }
  }
}

TEST_P(StructureLoops, ExtremesOfNaNAreTheFirst) {
  for (const Shape& shape : {Shape{20, 10, 1}, Shape{5, 70, 1}, Shape{1, 300, 1}, Shape{2, 40, 20}, Shape{1, 9, 150}}) {
    SCOPED_TRACE(shape.str());
    std::vector<double> values = values_of(random(shape, 3));
    for (std::size_t i = 5; i < values.size(); i += 3) values[i] = kNaN;
    const Tensor x = tensor_of(values, shape, dtype());
    for (const Extreme which : {Extreme::kLargest, Extreme::kSmallest}) {
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor of_both = on.empty({shape[0], shape[2]}), alone = on.empty(of_both.shape()),
                         indices = on.empty(of_both.shape(), DType::kInt64);
            on->extreme_dim(on(x), which, of_both, indices);
            on->extreme_dim(on(x), which, alone, {});
            return std::vector{of_both, alone, indices};
          },
          {});
    }
  }
}

TEST_P(StructureLoops, ScansMatchTheReference) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{3, 700, 1}, Shape{9, 700, 1}, Shape{19, 10, 1}, Shape{60, 10, 1},
                             Shape{17, 64, 1}, Shape{2, 9, 3}, Shape{2, 40, 600}, Shape{0, 2, 2}, Shape{2, 0, 3}}) {
    SCOPED_TRACE(shape.str());
    const Tensor a = random(shape, 1, -1.05, 1.05), b = random(shape, 2);
    for (const bool reverse : {false, true}) {
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor sums = on.empty(shape), products = on.empty(shape), both = on.empty(shape);
            on->scan({}, on(b), reverse, sums);
            on->scan(on(a), {}, reverse, products);
            on->scan(on(a), on(b), reverse, both);
            return std::vector{sums, products, both};
          },
          bounds(40));
    }
  }
}

TEST_P(StructureLoops, TranspositionsAreTheReferences) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{2, 3, 5}, Shape{1, 64, 64}, Shape{2, 65, 33}, Shape{1, 300, 3},
                             Shape{3, 3, 300}, Shape{33, 2, 70}, Shape{1, 2048, 33}, Shape{0, 2, 3}}) {
    for (const std::array<int, 3>& order : {std::array{0, 2, 1}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}}) {
      for (const DType moved : {dtype(), DType::kUInt8, DType::kInt64}) {
        const Tensor x = random_tensor(shape, moved, 1, 0, 250);
        expect_matches_reference(
            [&](const Place& on) {
              Walk from;
              const Walk dense = dense_walk(shape);
              std::array<std::int64_t, 3> extents{};
              for (std::size_t d = 0; d < 3; ++d) {
                extents[d] = shape[order[d]];
                from.strides[d] = dense.strides[static_cast<std::size_t>(order[d])];
              }
              const Tensor y = on.empty(Shape(extents), moved);
              on->copy_strided(on(x), from, y.shape(), y, dense_walk(y.shape()));
              return std::vector{y};
            },
            {});
      }
    }
  }
}

TEST_P(StructureLoops, WalksAreTheReferences) {
  const Tensor x = random({7, 40, 30}, 1);
  struct Case {
    Walk from;
    Shape extents;
    Walk to;
  };
  const Case cases[] = {
      {{.offset = 31, .strides = {1200, 60, 1}}, {7, 20, 17}, {.offset = 5, .strides = {340, 17, 1}}},
      {{.offset = 29, .strides = {30, -1}}, {280, 30}, {.strides = {30, 1}}},
      {{.strides = {0, 1}}, {5, 30}, {.strides = {30, 1}}},
      {{.strides = {1, 0}}, {30, 50}, {.strides = {50, 1}}},
      {{.strides = {30, 1}}, {280, 3}, {.offset = 2, .strides = {30, 7}}},
      {{.offset = 8399}, {}, {.offset = 8399}},
  };
  for (const Case& c : cases) {
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor y = on.copy(x);
          on->copy_strided(on(x), c.from, c.extents, y, c.to);
          return std::vector{y};
        },
        {});
  }
  const Tensor y = Tensor::zeros({8}, dtype());
  EXPECT_THROW(Movement::on(kCpu).copy_strided(x, {.offset = 8393, .strides = {1}}, {8}, y, {.strides = {1}}),
               ShapeError);
  EXPECT_THROW(Movement::on(kCpu).copy_strided(x, {.offset = 2, .strides = {-1}}, {8}, y, {.strides = {1}}),
               ShapeError);
  EXPECT_THROW(Movement::on(kCpu).copy_strided(x, {.strides = {1}}, {9}, y, {.strides = {1}}), ShapeError);
  EXPECT_THROW(Movement::on(kCpu).copy_strided(x, {.strides = {1}}, {8}, y, {.strides = {0}}), ShapeError);
}

TEST_P(StructureLoops, IndexingMatchesTheReference) {
  for (const Shape& part : {Shape{1, 50, 1}, Shape{700, 3, 1}, Shape{3, 1300, 1}, Shape{1, 300, 70}, Shape{5, 20, 3},
                            Shape{4, 9, 130}, Shape{2, 0, 3}, Shape{2, 0, 1}}) {
    constexpr std::int64_t kPlaces = 11;
    const Shape whole = part.with(1, kPlaces);
    const Tensor x = random(whole, 1), dy = random(part, 2);
    for (const Shape& shape : {Shape{part[1]}, part}) {
      const Tensor indices = random_tensor(shape, DType::kInt64, 3, 0, kPlaces);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor y = on.empty(part), dx = on.empty(whole), written = on.copy(x);
            on->gather(on(x), on(indices), y);
            on->scatter_add(on(dy), on(indices), dx);
            on->scatter(on(dy), on(indices), written);
            return std::vector{y, dx, written};
          },
          bounds(300));
    }
  }
}

TEST_P(StructureLoops, OrdersAreTheReferences) {
  for (const Shape& shape : kMiddles) {
    if (shape.numel() > 100000) continue;
    SCOPED_TRACE(shape.str());
    std::vector<double> values = values_of(random(shape, 1, -9, 9));
    for (std::size_t i = 0; i < values.size(); i += 3) values[i] = i % 2 == 0 ? std::round(values[i]) : kNaN;
    const Tensor x = tensor_of(values, shape, dtype());
    for (const bool descending : {false, true}) {
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor all = on.empty(shape, DType::kInt64),
                         some = on.empty(shape.with(1, (shape[1] + 2) / 3), DType::kInt64),
                         few = on.empty(shape.with(1, std::min<std::int64_t>(shape[1], 2)), DType::kInt64),
                         none = on.empty(shape.with(1, 0), DType::kInt64);
            on->order(on(x), descending, all);
            on->order(on(x), descending, some);
            on->order(on(x), descending, few);
            on->order(on(x), descending, none);
            return std::vector{all, some, few, none};
          },
          {});
    }
  }
}

TEST_P(StructureLoops, LinesOfEveryLengthAreTheReferences) {
  for (std::int64_t n = 1; n < 150; ++n) {
    SCOPED_TRACE(n);
    const Tensor x = random({1, 6, n}, 1), indices = random_tensor({9}, DType::kInt64, 3, 0, 6);
    expect_matches_reference(
        [&](const Place& on) {
          const Tensor picked = on.empty({1, 9, n}), beside = on.copy(random({6, 151}, 2));
          on->gather(on(x), on(indices), picked);
          on->copy_strided(on(x), {.strides = {n, 1}}, {6, n}, beside, {.offset = 1, .strides = {151, 1}});
          return std::vector{picked, beside};
        },
        {});
  }
}

TEST_P(StructureLoops, IndicesOutOfRangeAreRefused) {
  const Tensor x = random({1, 6, 1}, 1), y = Tensor::empty({1, 3, 1}, dtype());
  for (const std::int64_t bad : {-1, 6}) {
    EXPECT_THROW(Indexing::on(kCpu).gather(x, Tensor::from<std::int64_t>({0, bad, 5}, {1, 3, 1}), y), UsageError);
    EXPECT_THROW(Indexing::on(kCpu).gather(x, Tensor::from<std::int64_t>({0, bad, 5}, {3}), y), UsageError);
    EXPECT_THROW(Indexing::on(kCpu).scatter(y, Tensor::from<std::int64_t>({0, bad, 5}, {3}), x), UsageError);
    const Tensor lines = random({700, 6, 1}, 1), picked = Tensor::empty({700, 3, 1}, dtype());
    std::vector<std::int64_t> indices(2100, 5);
    for (const std::size_t place : {0u, 1024u, 2099u}) {
      indices[place] = bad;
      EXPECT_THROW(Indexing::on(kCpu).gather(lines, Tensor::from(indices, {700, 3, 1}), picked), UsageError);
      indices[place] = 5;
    }
    const Tensor none = Tensor::empty({1, 0, 1}, dtype());
    EXPECT_THROW(Indexing::on(kCpu).gather(none, Tensor::from<std::int64_t>({0, bad, 5}, {1, 3, 1}), y), UsageError);
  }
}

TEST_P(StructureLoops, ThreadsChangeNothing) {
  const auto on = tested();
  const Tensor columns = on(random({3, 9001, 17}, 1)), line = on(random({1, 500000, 1}, 2)),
               rows = on(random({1, 9001, 70}, 3));
  const Tensor indices = on(random_tensor({9001}, DType::kInt64, 4, 0, 50));
  expect_same_bits_on_any_number_of_threads([&] {
    const Tensor sums = on.empty({3, 17}), variance = on.empty({3, 17}), total = on.empty({1, 1}),
                 scan = on.empty(columns.shape()), added = on.empty({1, 50, 70}), turned = on.empty({3, 17, 9001}),
                 written = on(random({1, 50, 70}, 5)), order = on.empty(columns.shape(), DType::kInt64);
    on->sum_dim(columns, Term::kSquare, 1, sums);
    on->variance_dim(columns, 9000, variance);
    on->sum_dim(line, Term::kValue, 1, total);
    on->scan({}, columns, false, scan);
    on->scatter_add(rows, indices, added);
    on->scatter(rows, indices, written);
    on->order(columns, true, order);
    on->copy_strided(columns, {.strides = {9001 * 17, 1, 17}}, turned.shape(), turned, dense_walk(turned.shape()));
    return std::vector{sums, variance, total, scan, added, turned, written, order};
  });
}

}  // namespace
}  // namespace lockstep::kernels
