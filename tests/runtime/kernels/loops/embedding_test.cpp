// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/embedding.h"

#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

class EmbeddingLoops : public KernelTest<Embedding> {
 protected:
  static Tensor indices(std::int64_t n, std::int64_t rows) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < n; ++i) all.push_back(i * i * 7 % rows);
    return Tensor::from(all, {n});
  }
};
INSTANTIATE_TEST_SUITE_P(On, EmbeddingLoops, kFastTypes, name_of_on);

TEST_P(EmbeddingLoops, MatchTheReference) {
  for (const std::int64_t width : {1, 3, 8, 64, 513}) {
    for (const std::int64_t n : {0, 1, 50, 700}) {
      for (const std::int64_t skipped : {-1, 0}) {
        SCOPED_TRACE(std::to_string(n) + " rows of " + std::to_string(width));
        const Tensor weight = random({11, width}, 1), dy = random({n, width}, 2);
        const Tensor index = indices(n, 11), before = random_tensor({11, width}, DType::kFloat32, 3);
        expect_matches_reference(
            [&](const Place& on) {
              const Tensor y = on.empty({n, width}), own = on.empty({11, width});
              const Tensor wide = on.empty({11, width}, DType::kFloat32), added = on.copy(before);
              on->embedding(on(weight), on(index), skipped, y);
              on->embedding_backward(on(dy), on(index), skipped, false, own);
              on->embedding_backward(on(dy), on(index), skipped, false, wide);
              on->embedding_backward(on(dy), on(index), skipped, true, added);
              return std::vector{y, own, wide, added};
            },
            bounds(700));
      }
    }
  }
}

/// A GPU adds up 256 rows of an index at a time.
TEST_P(EmbeddingLoops, AFrequentIndexIsAddedUpInPieces) {
  const std::int64_t counts[] = {1, 256, 257, 512, 3, 513, 0, 2, 1500};
  std::vector<std::int64_t> all;
  for (std::int64_t round = 0; round < 1500; ++round) {
    for (std::int64_t row = 0; row < 9; ++row) {
      if (round < counts[row]) all.push_back(row);
    }
  }
  const std::int64_t n = std::ssize(all);
  const Tensor index = Tensor::from(all, {n});
  for (const std::int64_t width : {1, 24}) {
    for (const std::int64_t skipped : {-1, 3}) {
      const Tensor dy = random({n, width}, 1), before = random_tensor({9, width}, DType::kFloat32, 2);
      expect_matches_reference(
          [&](const Place& on) {
            const Tensor own = on.empty({9, width}), added = on.copy(before);
            on->embedding_backward(on(dy), on(index), skipped, false, own);
            on->embedding_backward(on(dy), on(index), skipped, true, added);
            return std::vector{own, added};
          },
          bounds(1500));
    }
  }
}

TEST_P(EmbeddingLoops, IndicesOfAnyShape) {
  const Tensor weight = random({5, 4}, 1), index = Tensor::from<std::int64_t>({0, 4, 4, 2, 1, 1}, {2, 1, 3});
  expect_matches_reference(
      [&](const Place& on) {
        const Tensor y = on.empty({2, 1, 3, 4}), one = on.empty({4});
        on->embedding(on(weight), on(index), -1, y);
        on->embedding(on(weight), on(Tensor::from<std::int64_t>({3}, {})), -1, one);
        return std::vector{y, one};
      },
      {});
}

TEST_P(EmbeddingLoops, AnIndexOutOfRangeIsNotOverlooked) {
  for (const std::int64_t wrong : {std::int64_t{-1}, std::int64_t{5}, std::int64_t{1} << 40}) {
    const Tensor weight = random({5, 4}, 1), index = Tensor::from<std::int64_t>({2, wrong}, {2});
    const auto on = tested();
    const Tensor y = on.empty({2, 4}), dweight = on.zeros({5, 4});
    if (device() == kCpu) {
      EXPECT_THROW(on->embedding(on(weight), on(index), -1, y), UsageError);
      EXPECT_THROW(on->embedding_backward(y, on(index), -1, false, dweight), UsageError);
    } else {  // nobody waits for a GPU to hear of it
      on->embedding(on(weight), on(index), -1, y);
      for (const double value : values_of(y.rows(1, 2))) EXPECT_TRUE(std::isnan(value));
      on->embedding_backward(on(random({2, 4}, 2)), on(index), -1, false, dweight);
      for (const double value : values_of(dweight)) EXPECT_FALSE(std::isnan(value));
    }
  }
}

TEST_P(EmbeddingLoops, ThreadsChangeNothing) {
  const Tensor weight = random({3000, 100}, 1), dy = random({5000, 100}, 2);
  const Tensor index = indices(5000, 3000);
  expect_same_bits_on_any_number_of_threads([&, on = tested()] {
    const Tensor y = on.empty({5000, 100}), dweight = on.empty({3000, 100});
    on->embedding(on(weight), on(index), 4, y);
    on->embedding_backward(on(dy), on(index), 4, false, dweight);
    return std::vector{y, dweight};
  });
}

TEST(EmbeddingKernel, RefusesWhatDoesNotFit) {
  const Embedding& on = Embedding::on(kCpu);
  const Tensor weight = Tensor::zeros({5, 4}, DType::kFloat32), index = Tensor::zeros({2, 3}, DType::kInt64);
  const auto zeros = [](const Shape& shape) { return Tensor::zeros(shape, DType::kFloat32); };
  EXPECT_THROW(on.embedding(weight, index, -1, zeros({2, 4})), ShapeError);
  EXPECT_THROW(on.embedding(weight, index, -1, zeros({2, 3, 5})), ShapeError);
  EXPECT_THROW(on.embedding(weight, Tensor::zeros({2, 3}, DType::kInt32), -1, zeros({2, 3, 4})), ShapeError);
  EXPECT_THROW(on.embedding(zeros({5}), index, -1, zeros({2, 3, 4})), ShapeError);
  EXPECT_THROW(on.embedding_backward(zeros({2, 4}), index, -1, false, weight), ShapeError);
}

}  // namespace
}  // namespace lockstep::kernels
