// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/attention.h"

#include <algorithm>
#include <tuple>

#include "runtime/tensor/memory.h"
#include "tests/runtime/kernels/loops/loops_fixture.h"

namespace lockstep::kernels {
namespace {

using namespace testing;

struct Extents {
  std::int64_t batch = 1, heads = 1, kv_heads = 1, queries = 1, keys = 1, channels = 4, value_channels = 4;

  Shape q() const { return {batch, heads, queries, channels}; }
  Shape k() const { return {batch, kv_heads, keys, channels}; }
  Shape v() const { return {batch, kv_heads, keys, value_channels}; }
  Shape out() const { return {batch, heads, queries, value_channels}; }
  Shape norms() const { return {batch, heads, queries, 2}; }
};

class AttentionLoops : public KernelTest<Attention> {
 protected:
  /// Both passes on the device against the reference. The mask lies where the run computes.
  void expect_like_reference(const Extents& extents, AttentionScores scores) {
    SCOPED_TRACE("q " + extents.q().str() + " k " + extents.k().str() + " v " + extents.v().str());
    const Tensor q = random(extents.q(), 1), k = random(extents.k(), 2), v = random(extents.v(), 3);
    const Tensor dout = random(extents.out(), 4);
    const auto out = reference().empty(extents.out());
    const auto norms = reference().empty(extents.norms(), wide());
    reference()->attention(q, k, v, scores, out, norms);
    const Tensor mask = scores.mask;
    // The backward pass starts from the rounded result, whatever made it.
    expect_matches_reference(
        [&](const Place& on) {
          AttentionScores there = scores;
          there.mask = on(mask);
          const Tensor y = on.empty(extents.out()), norm = on.empty(extents.norms(), wide());
          const Tensor dq = on.empty(extents.q()), dk = on.empty(extents.k()), dv = on.empty(extents.v());
          on->attention(on(q), on(k), on(v), there, y, norm);
          on->attention_backward(on(q), on(k), on(v), there, on(out), on(norms), on(dout), dq, dk, dv);
          return std::vector{y, device() == kCpu ? norm : sums_of_pairs(norm), dq, dk, dv};
        },
        bounds_of(extents));
  }

  /// A GPU may divide a query's norms otherwise; their sum is the same.
  static Tensor sums_of_pairs(const Tensor& norms) {
    const std::vector<double> values = values_of(norms);
    std::vector<double> sums;
    for (std::size_t i = 0; i < values.size(); i += 2) sums.push_back(values[i] + values[i + 1]);
    return tensor_of(sums, Shape{norms.numel() / 2}, norms.dtype());
  }

  static Bounds bounds_of(const Extents& extents) {
    Bounds close = bounds(4 * (extents.queries + extents.keys) * extents.heads / extents.kv_heads);
    // A GPU's tensor cores get probabilities and slopes of scores rounded to 16 bits.
    const bool is_multiplied = device() != kCpu && is_reduced(dtype()) && std::min(extents.queries, extents.keys) >= 32;
    if (is_multiplied) close.absolute += 4 * epsilon_of(dtype());
    return close;
  }

  static Tensor some_allowed(const Shape& shape) {
    const Tensor mask = Tensor::empty(shape, DType::kBool);
    std::int64_t i = 0;
    for (bool& allowed : mask.mutable_as<bool>()) allowed = i++ * 7 % 5 < 3;
    return mask;
  }
};
INSTANTIATE_TEST_SUITE_P(On, AttentionLoops, kFastTypes, name_of_on);

TEST_P(AttentionLoops, MatchesTheReferenceForEveryLength) {
  for (const std::int64_t queries : {1, 2, 7, 64, 65, 257}) {
    for (const std::int64_t keys : {1, 2, 7, 64, 65, 257}) {
      if (queries != keys && queries + keys > 130) continue;  // The reference is slow.
      for (const bool causal : {false, true}) {
        expect_like_reference({.queries = queries, .keys = keys, .channels = 5, .value_channels = 3},
                              {.scale = 0.7, .causal = causal});
      }
    }
  }
}

TEST_P(AttentionLoops, MatchesTheReferenceForEveryNumberOfChannels) {
  for (const std::int64_t channels : {1, 6, 16, 33, 64, 100}) {
    expect_like_reference({.batch = 2,
                           .heads = 2,
                           .kv_heads = 2,
                           .queries = 9,
                           .keys = 11,
                           .channels = channels,
                           .value_channels = 105 - channels},
                          {.scale = 0.3});
  }
}

TEST_P(AttentionLoops, HeadsOfQueriesShareHeadsOfKeys) {
  for (const std::int64_t kv_heads : {1, 2, 6}) {
    expect_like_reference({.batch = 2, .heads = 6, .kv_heads = kv_heads, .queries = 5, .keys = 8},
                          {.scale = 1.0, .causal = true});
  }
}

TEST_P(AttentionLoops, MasksAreBroadcast) {
  const Extents extents{.batch = 2, .heads = 3, .kv_heads = 3, .queries = 70, .keys = 101};
  for (const Shape& shape : {Shape{2, 3, 70, 101}, Shape{1, 1, 70, 101}, Shape{2, 1, 1, 101}, Shape{1, 3, 1, 101}}) {
    SCOPED_TRACE(shape.str());
    const bool causal = shape[2] == 1;
    expect_like_reference(extents, {.scale = 0.5, .causal = causal, .mask = random(shape, 9, -3, 3)});
    expect_like_reference(extents, {.scale = 0.5, .causal = !causal, .mask = some_allowed(shape)});
  }
}

TEST_P(AttentionLoops, AQueryThatSeesNoKeyGivesNothing) {
  const Tensor mask = Tensor::zeros({1, 1, 66, 3}, DType::kBool);
  mask.mutable_as<bool>()[3 * 65] = true;
  expect_like_reference({.queries = 66, .keys = 3}, {.scale = 1.0, .mask = mask});
  // No key at all, no query, no head, no channels.
  expect_like_reference({.queries = 5, .keys = 0}, {.scale = 1.0});
  expect_like_reference({.queries = 0, .keys = 5}, {.scale = 1.0, .causal = true});
  expect_like_reference({.batch = 0, .queries = 5, .keys = 5}, {.scale = 1.0});
  expect_like_reference({.queries = 5, .keys = 5, .channels = 0}, {.scale = 1.0});
}

TEST_P(AttentionLoops, LargeScoresDoNotOverflow) {
  const auto on = tested();
  const Tensor q = on(tensor_of({100, 100}, {1, 1, 2, 1}, dtype()));
  const Tensor k = on(tensor_of({-100, 50, 100}, {1, 1, 3, 1}, dtype()));
  const Tensor v = on(tensor_of({1, 2, 4}, {1, 1, 3, 1}, dtype()));
  const Tensor out = on.empty({1, 1, 2, 1}), norms = on.empty({1, 1, 2, 2}, DType::kFloat32);
  on->attention(q, k, v, {}, out, norms);
  EXPECT_EQ(values_of(out), (std::vector<double>{4, 4}));
  EXPECT_EQ(values_of(norms), (std::vector<double>{10000, 0, 10000, 0}));
}

TEST_P(AttentionLoops, NaNReachesTheResultsThatItConcerns) {
  const auto on = tested();
  const Tensor q = on(tensor_of({1, kNaN}, {1, 1, 2, 1}, dtype()));
  const Tensor k = on(tensor_of({1, 2, 3}, {1, 1, 3, 1}, dtype()));
  const Tensor out = on.empty({1, 1, 2, 1}), norms = on.empty({1, 1, 2, 2}, DType::kFloat32);
  on->attention(q, k, k, {}, out, norms);
  EXPECT_FALSE(std::isnan(out.to(kCpu).item(0)));
  EXPECT_TRUE(std::isnan(out.to(kCpu).item(1)));
}

TEST_P(AttentionLoops, GradientsThatNobodyWantsAreLeftOut) {
  const Extents extents{.heads = 2, .kv_heads = 1, .queries = 5, .keys = 7};
  const auto on = tested();
  const Tensor q = on(random(extents.q(), 1)), k = on(random(extents.k(), 2)), v = on(random(extents.v(), 3)),
               dout = on(random(extents.out(), 4));
  const Tensor out = on.empty(extents.out()), norms = on.empty(extents.norms(), DType::kFloat32);
  on->attention(q, k, v, {}, out, norms);
  const auto backward = [&](bool with_dq, bool with_dk, bool with_dv) {
    const Tensor dq = with_dq ? on.empty(extents.q()) : Tensor(), dk = with_dk ? on.empty(extents.k()) : Tensor(),
                 dv = with_dv ? on.empty(extents.v()) : Tensor();
    on->attention_backward(q, k, v, {}, out, norms, dout, dq, dk, dv);
    return std::vector{bytes_of(dq), bytes_of(dk), bytes_of(dv)};
  };
  const auto all = backward(true, true, true);
  EXPECT_EQ(backward(true, false, false)[0], all[0]);
  EXPECT_EQ(backward(false, true, false)[1], all[1]);
  EXPECT_EQ(backward(false, false, true)[2], all[2]);
}

TEST_P(AttentionLoops, ResultsDoNotDependOnTheNumberOfThreads) {
  const Extents extents{
      .batch = 2, .heads = 4, .kv_heads = 2, .queries = 257, .keys = 200, .channels = 32, .value_channels = 32};
  const auto on = tested();
  const Tensor q = on(random(extents.q(), 1)), k = on(random(extents.k(), 2)), v = on(random(extents.v(), 3)),
               dout = on(random(extents.out(), 4));
  expect_same_bits_on_any_number_of_threads([&] {
    const Tensor out = on.empty(extents.out()), norms = on.empty(extents.norms(), DType::kFloat32);
    const Tensor dq = on.empty(extents.q()), dk = on.empty(extents.k()), dv = on.empty(extents.v());
    const AttentionScores scores{.scale = 0.2, .causal = true};
    on->attention(q, k, v, scores, out, norms);
    on->attention_backward(q, k, v, scores, out, norms, dout, dq, dk, dv);
    return std::vector{out, norms, dq, dk, dv};
  });
}

/// Queries, keys and values lie in sequences, the results and their slopes in others, and so do the gradients.
TEST_P(AttentionLoops, HeadsThatLieInSequencesGiveTheSameBits) {
  struct Case {
    std::int64_t batch, heads, kv_heads, length, channels;
    bool causal;
    double dropout;
  };
  for (const Case& c : {Case{2, 4, 2, 5, 3, false, 0},
                        {1, 2, 1, 70, 8, true, 0},
                        {2, 4, 2, 150, 32, true, 0},
                        {2, 2, 2, 100, 64, false, 0.3},
                        {2, 1, 1, 64, 33, true, 0}}) {
    SCOPED_TRACE(c.length);
    const std::int64_t width = (c.heads + 2 * c.kv_heads) * c.channels;
    const auto on = tested();
    const Tensor packed = on(random({c.batch, c.length, width}, 1)),
                 dy = on(random({c.batch, c.length, c.heads * c.channels}, 2));
    const auto heads = [&](const Tensor& in, std::int64_t first, std::int64_t count) {
      return Heads(in, first * c.channels, count, c.channels);
    };
    const auto dense = [&](const Heads& from) {
      const Tensor copy = on.empty(from.shape());
      Movement::on(device()).copy_strided(from.tensor(), from.walk(), from.shape(), copy, dense_walk(copy.shape()));
      return copy;
    };
    const Heads q = heads(packed, 0, c.heads), k = heads(packed, c.heads, c.kv_heads),
                v = heads(packed, c.heads + c.kv_heads, c.kv_heads), dout = heads(dy, 0, c.heads);
    const AttentionScores scores{
        .scale = 0.3,
        .causal = c.causal,
        .dropout = {.p = c.dropout, .key = {.seed = 3}, .elements_of_sample = c.heads * c.length * c.length}};
    const Tensor y = on.zeros(dy.shape(), dtype()), dpacked = on.zeros(packed.shape(), dtype());
    const Tensor norms = on.empty({c.batch, c.heads, c.length, 2}, DType::kFloat32);
    const Heads out = heads(y, 0, c.heads), dq = heads(dpacked, 0, c.heads), dk = heads(dpacked, c.heads, c.kv_heads),
                dv = heads(dpacked, c.heads + c.kv_heads, c.kv_heads);
    on->attention(q, k, v, scores, out, norms);
    on->attention_backward(q, k, v, scores, out, norms, dout, dq, dk, dv);

    const Tensor of_q = dense(q), of_k = dense(k), of_v = dense(v), of_dout = dense(dout);
    const Tensor result = on.empty(of_q.shape()), same_norms = on.empty(norms.shape(), DType::kFloat32);
    const Tensor grad_q = on.empty(of_q.shape()), grad_k = on.empty(of_k.shape()), grad_v = on.empty(of_v.shape());
    on->attention(of_q, of_k, of_v, scores, result, same_norms);
    on->attention_backward(of_q, of_k, of_v, scores, result, same_norms, of_dout, grad_q, grad_k, grad_v);
    EXPECT_EQ(bytes_of(dense(out)), bytes_of(result));
    EXPECT_EQ(bytes_of(norms), bytes_of(same_norms));
    EXPECT_EQ(bytes_of(dense(dq)), bytes_of(grad_q));
    EXPECT_EQ(bytes_of(dense(dk)), bytes_of(grad_k));
    EXPECT_EQ(bytes_of(dense(dv)), bytes_of(grad_v));

    // What is not asked for stays as it was.
    const Tensor untouched = on.zeros(packed.shape(), dtype());
    on->attention_backward(q, k, v, scores, out, norms, dout, {}, heads(untouched, c.heads, c.kv_heads), {});
    EXPECT_EQ(bytes_of(dense(heads(untouched, c.heads, c.kv_heads))), bytes_of(grad_k));
    EXPECT_EQ(values_of(dense(heads(untouched, 0, c.heads))), std::vector<double>(values_of(of_q).size(), 0.0));
  }
}

/// Nothing that is read or written in wide accesses may count on where a tensor begins.
TEST_P(AttentionLoops, TensorsThatBeginAnywhereGiveTheSameBits) {
  const auto on = tested();
  const auto shifted = [&](const Shape& shape) {
    return on.zeros({shape.numel() + 1}, dtype()).detach_rows(1, shape.numel() + 1).detach(shape);
  };
  const auto copy_of = [&](const Tensor& x) {
    const Tensor copy = shifted(x.shape());
    copy.copy_from(x);
    return copy;
  };
  const Shape shape{2, 2, 70, 16}, packed_shape{2, 70, 6 * 16}, joined{2, 70, 2 * 16};
  const AttentionScores scores{.scale = 0.3, .causal = true};
  const Tensor norms = on.empty({2, 2, 70, 2}, DType::kFloat32);
  const Tensor q = on(random(shape, 1)), k = on(random(shape, 2)), v = on(random(shape, 3)),
               dout = on(random(shape, 4));
  const Tensor packed = on(random(packed_shape, 5)), dy = on(random(joined, 6));
  const auto dense = [&](auto place, auto empty) {
    const Tensor out = empty(shape), dq = empty(shape), dk = empty(shape), dv = empty(shape);
    on->attention(place(q), place(k), place(v), scores, out, norms);
    on->attention_backward(place(q), place(k), place(v), scores, out, norms, place(dout), dq, dk, dv);
    return std::vector{bytes_of(out), bytes_of(dq), bytes_of(dk), bytes_of(dv)};
  };
  const auto in_sequences = [&](auto place, auto empty) {
    const Tensor x = place(packed), y = empty(joined), dx = empty(packed_shape);
    const auto part = [](const Tensor& of, std::int64_t i) { return Heads(of, 32 * i, 2, 16); };
    on->attention(part(x, 0), part(x, 1), part(x, 2), scores, part(y, 0), norms);
    on->attention_backward(part(x, 0), part(x, 1), part(x, 2), scores, part(y, 0), norms, part(place(dy), 0),
                           part(dx, 0), part(dx, 1), part(dx, 2));
    return std::vector{bytes_of(y), bytes_of(dx)};
  };
  const auto as_it_is = [](const Tensor& x) { return x; };
  const auto aligned = [&](const Shape& of) { return on.zeros(of, dtype()); };
  EXPECT_EQ(dense(copy_of, shifted), dense(as_it_is, aligned));
  EXPECT_EQ(in_sequences(copy_of, shifted), in_sequences(as_it_is, aligned));
}

TEST(Heads, ThatDoNotLieInTheirSequencesAreRefused) {
  const Tensor sequences = Tensor::zeros({2, 3, 12}, DType::kFloat32);
  EXPECT_EQ(Heads(sequences, 4, 2, 4).shape(), (Shape{2, 2, 3, 4}));
  EXPECT_THROW(Heads(sequences, 5, 2, 4), ShapeError);
  EXPECT_THROW(Heads(sequences, -4, 2, 4), ShapeError);
  EXPECT_THROW(Heads(sequences, 0, -1, 4), ShapeError);
  EXPECT_THROW(Heads(Tensor::zeros({2, 1, 3, 12}, DType::kFloat32), 0, 1, 12), ShapeError);
}

TEST_P(AttentionLoops, WrongShapesAreRefused) {
  const auto on = tested();
  const auto attention = [&](const Shape& q, const Shape& k, const Shape& v, const Tensor& mask) {
    const Tensor out = on.empty(Shape{q[0], q[1], q[2], v[3]}),
                 norms = on.empty({q[0], q[1], q[2], 2}, DType::kFloat32);
    on->attention(on(random(q, 1)), on(random(k, 2)), on(random(v, 3)), {.mask = mask}, out, norms);
  };
  attention({2, 4, 3, 5}, {2, 2, 6, 5}, {2, 2, 6, 7}, {});
  EXPECT_THROW(attention({2, 4, 3, 5}, {2, 3, 6, 5}, {2, 3, 6, 7}, {}), ShapeError);
  EXPECT_THROW(attention({2, 4, 3, 5}, {2, 4, 6, 4}, {2, 4, 6, 7}, {}), ShapeError);
  EXPECT_THROW(attention({2, 4, 3, 5}, {2, 4, 6, 5}, {2, 4, 5, 7}, {}), ShapeError);
  EXPECT_THROW(attention({2, 4, 3, 5}, {1, 4, 6, 5}, {1, 4, 6, 7}, {}), ShapeError);
  const auto masked = [&](const Shape& mask, DType dtype) {
    attention({2, 4, 3, 5}, {2, 4, 6, 5}, {2, 4, 6, 7}, on.zeros(mask, dtype));
  };
  masked({2, 1, 3, 6}, DType::kBool);
  EXPECT_THROW(masked({2, 2, 3, 6}, DType::kBool), ShapeError);
  EXPECT_THROW(masked({2, 4, 3, 1}, DType::kBool), ShapeError);
  EXPECT_THROW(masked({3, 6}, DType::kBool), ShapeError);
  EXPECT_THROW(masked({2, 1, 3, 6}, DType::kInt64), ShapeError);
}

using GpuAttention = devices::GpuTest;

// The scores of the batch take 512 MiB in 16 bits, so that cuDNN gets it in parts; those of a sample fit.
TEST_F(GpuAttention, ABatchGivesWhatItsSamplesGive) {
  constexpr std::int64_t kSamples = 2, kHeads = 2, kLength = 8192, kChannels = 16;
  const AttentionScores scores{.scale = 0.125, .causal = true};
  const Attention& gpu = Attention::on(devices::kGpu);
  const auto tensor = [](std::uint32_t seed, std::int64_t heads) {
    return random_tensor({kSamples, heads, kLength, kChannels}, DType::kBFloat16, seed).to(devices::kGpu);
  };
  const Tensor q = tensor(1, kHeads), k = tensor(2, kHeads / 2), v = tensor(3, kHeads / 2), dout = tensor(4, kHeads);
  const auto gradients = [&](std::int64_t begin, std::int64_t end) {
    const Tensor queries = q.rows(begin, end), keys = k.rows(begin, end), values = v.rows(begin, end);
    const Tensor out = Tensor::empty(queries.shape(), DType::kBFloat16, devices::kGpu);
    const Tensor norms = Tensor::empty({end - begin, kHeads, kLength, 2}, DType::kFloat32, devices::kGpu);
    std::vector<Tensor> results{Tensor::empty(queries.shape(), DType::kBFloat16, devices::kGpu),
                                Tensor::empty(keys.shape(), DType::kBFloat16, devices::kGpu),
                                Tensor::empty(keys.shape(), DType::kBFloat16, devices::kGpu)};
    gpu.attention(queries, keys, values, scores, out, norms);
    gpu.attention_backward(queries, keys, values, scores, out, norms, dout.rows(begin, end), results[0], results[1],
                           results[2]);
    return results;
  };
  const std::vector<Tensor> whole = gradients(0, kSamples);
  const std::vector<Tensor> again = gradients(0, kSamples);
  for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_EQ(bytes_of(whole[i]), bytes_of(again[i])) << "gradient " << i;
  for (std::int64_t sample = 0; sample < kSamples; ++sample) {
    const std::vector<Tensor> alone = gradients(sample, sample + 1);
    for (std::size_t i = 0; i < alone.size(); ++i) {
      const std::vector<double> found = values_of(whole[i].rows(sample, sample + 1)), wanted = values_of(alone[i]);
      double worst = 0;
      for (std::size_t at = 0; at < found.size(); ++at) worst = std::max(worst, std::abs(found[at] - wanted[at]));
      EXPECT_LT(worst, 0.05) << "sample " << sample << ", gradient " << i;
    }
  }
}

// The whole matrix of scores would take 16 MiB, and the backward pass two. In bfloat16 a block of queries may lie
// beside all keys.
TEST(AttentionMemory, GrowsWithTheLengthAndNotWithItsSquare) {
  constexpr std::int64_t kLength = 2048;
  for (const auto& [dtype, channels, most] :
       {std::tuple(DType::kFloat16, 8, 1 << 20), {DType::kBFloat16, 32, 4 << 20}}) {
    const Shape shape{1, 1, kLength, channels};
    const auto tensor = [&, dtype = dtype] { return random_tensor(shape, dtype, 1); };
    const Tensor q = tensor(), k = tensor(), v = tensor(), dout = tensor(), dq = tensor(), dk = tensor(), dv = tensor();
    const Tensor out = tensor(), norms = Tensor::empty({1, 1, kLength, 2}, DType::kFloat32);
    const Attention& cpu = Attention::on(kCpu);
    reset_peak(kCpu);
    const std::size_t before = memory_statistics(kCpu).peak;
    cpu.attention(q, k, v, {.causal = true}, out, norms);
    cpu.attention_backward(q, k, v, {.causal = true}, out, norms, dout, dq, dk, dv);
    EXPECT_LT(memory_statistics(kCpu).peak - before, static_cast<std::size_t>(most)) << name_of(dtype);
  }
}

}  // namespace
}  // namespace lockstep::kernels
