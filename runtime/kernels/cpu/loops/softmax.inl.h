// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/block.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

template <class Term>
float float_sum_block(std::int64_t n, Term term) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += term(i);
  return sum;
}

/// Sum of term(in[i]...). Not inlined: behind a Reader, which reads float32 in place and other dtypes from a buffer,
/// GCC would vectorize the loop over the buffer alone.
template <class Term, class... In>
[[gnu::noinline]] float sum_of_terms(std::int64_t n, Term term, const In*... in) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += term(in[i]...);
  return sum;
}

float max_block(std::int64_t n, const float* values) {
  float largest = values[0];
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < n; ++i) largest = values[i] > largest ? values[i] : largest;
  return largest;
}

/// log sum_c e^(x_c) of a row is max + log(sum).
struct Exponentials {
  // Not -inf, for which a row that starts with -inf would give NaN.
  float max = std::numeric_limits<float>::lowest();
  float sum = 0;
};

/// One pass over the row: the sum so far is scaled whenever a block raises the maximum.
Exponentials sum_exponentials(Reader& x, std::int64_t first, std::int64_t channels) {
  Exponentials row;
  for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
    const float* values = x(first + begin, n);
    const float max = std::max(row.max, max_block(n, values));
    row.sum *= fast_exp(row.max - max);
    row.max = max;
    row.sum += float_sum_block(n, [=](std::int64_t i) { return fast_exp(values[i] - max); });
  });
  return row;
}

/// A number for each of the lines of a block, next to their elements.
class OfLines {
 public:
  void set(std::int64_t line, std::int64_t n, float value) { fill_lanes(values_ + line * n, n, value); }
  const float* values() const { return values_; }

 private:
  alignas(64) float values_[kBlock + kLanes];
};

/// Calls f(first, lines) for as many whole lines of n <= kBlock elements as fit a block.
template <class F>
void for_each_lines(std::int64_t lines, std::int64_t n, F f) {
  const std::int64_t at_once = kBlock / n;
  for (std::int64_t first = 0; first < lines; first += at_once) f(first, std::min(at_once, lines - first));
}

/// softmax() of rows that fit a block. What is done element by element is done for all rows of a block at once.
void softmax_of_short(Input x, bool log, Output y, std::int64_t rows, std::int64_t channels) {
  Reader x_block(x);
  Writer y_block(y);
  OfLines of_row;
  for_each_lines(rows, channels, [&](std::int64_t first, std::int64_t count) {
    const std::int64_t n = count * channels;
    const float* values = x_block(first * channels, n);
    float* to = y_block(first * channels, n);
    for (std::int64_t row = 0; row < count; ++row) {
      of_row.set(row, channels, std::max(Exponentials().max, max_block(channels, values + row * channels)));
    }
    if (log) {
      transform_block(
          n, to, [](float v, float max) { return v - max; }, values, of_row.values());
      for (std::int64_t row = 0; row < count; ++row) {
        const float* distances = to + row * channels;
        const float sum = float_sum_block(channels, [=](std::int64_t i) { return fast_exp(distances[i]); });
        of_row.set(row, channels, std::log(sum));
      }
      transform_block(
          n, to, [](float distance, float log_sum) { return distance - log_sum; }, to, of_row.values());
    } else {
      transform_block(
          n, to, [](float v, float max) { return fast_exp(v - max); }, values, of_row.values());
      for (std::int64_t row = 0; row < count; ++row) {
        const float* exponentials = to + row * channels;
        const float sum = float_sum_block(channels, [=](std::int64_t i) { return exponentials[i]; });
        of_row.set(row, channels, 1.0f / sum);
      }
      transform_block(
          n, to, [](float exponential, float inverse) { return exponential * inverse; }, to, of_row.values());
    }
    y_block.commit();
  });
}

void softmax(Input x, bool log, Output y, std::int64_t rows, std::int64_t channels) {
  if (channels <= kBlock) return softmax_of_short(x, log, y, rows, channels);
  Reader x_block(x);
  Writer y_block(y);
  for (std::int64_t first = 0; first < rows * channels; first += channels) {
    const auto [max, sum] = sum_exponentials(x_block, first, channels);
    const auto write = [&](auto probability) {
      for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
        transform_block(n, y_block(first + begin, n), probability, x_block(first + begin, n));
        y_block.commit();
      });
    };
    if (log) {
      write([max = max, log_sum = std::log(sum)](float v) { return (v - max) - log_sum; });
    } else {
      write([max = max, inverse = 1.0f / sum](float v) { return fast_exp(v - max) * inverse; });
    }
  }
}

/// Rows of width <= kBlock columns that lie `stride` apart: how many pass through a buffer at once. Where they are
/// neighbours, as many as fit.
struct RowGroups {
  RowGroups(std::int64_t all_rows, std::int64_t row_stride, std::int64_t row_width)
      : rows(all_rows), stride(row_stride), width(row_width), at_once(stride == width ? kBlock / width : 1) {}

  /// Calls f(first element, rows, elements) for the groups.
  template <class F>
  void for_each(F f) const {
    for (std::int64_t k = 0; k < rows; k += at_once) {
      const std::int64_t count = std::min(at_once, rows - k);
      f(k * stride, count, count * width);
    }
  }

  std::int64_t rows, stride, width, at_once;
};

/// softmax() over the rows of width <= kBlock columns; rows lie `stride` apart.
void softmax_columns(Input x, bool log, Output y, std::int64_t rows, std::int64_t stride, std::int64_t width) {
  const RowGroups groups(rows, stride, width);
  Reader x_block(x);
  Writer y_block(y);
  alignas(64) float max[kBlock], norm[kBlock];
  std::fill_n(max, width, Exponentials().max);
  std::fill_n(norm, width, 0.0f);
  groups.for_each([&](std::int64_t first, std::int64_t count, std::int64_t n) {
    const float* row = x_block(first, n);
    for (std::int64_t r = 0; r < count; ++r, row += width) {
      LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) max[i] = row[i] > max[i] ? row[i] : max[i];
    }
  });
  groups.for_each([&](std::int64_t first, std::int64_t count, std::int64_t n) {
    const float* row = x_block(first, n);
    for (std::int64_t r = 0; r < count; ++r, row += width) {
      LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) norm[i] += fast_exp(row[i] - max[i]);
    }
  });
  const auto write = [&](auto probability) {
    groups.for_each([&](std::int64_t first, std::int64_t count, std::int64_t n) {
      const float* row = x_block(first, n);
      float* to = y_block(first, n);
      for (std::int64_t r = 0; r < count; ++r) {
        transform_block(width, to + r * width, probability, row + r * width, &max[0], &norm[0]);
      }
      y_block.commit();
    });
  };
  if (log) {
    transform_block(
        width, norm, [](float sum) { return Log::value(sum); }, &norm[0]);
    write([](float v, float largest, float log_sum) { return (v - largest) - log_sum; });
  } else {
    transform_block(
        width, norm, [](float sum) { return 1.0f / sum; }, &norm[0]);
    write([](float v, float largest, float inverse) { return fast_exp(v - largest) * inverse; });
  }
}

/// Calls f(gradient, summand) with the functions of (y, dy, sum) and of (y, dy).
template <class F>
void visit_softmax_backward(bool log, F f) {
  if (log) {
    return f([](float v, float d, float sum) { return d - fast_exp(v) * sum; }, [](float, float d) { return d; });
  }
  f([](float v, float d, float sum) { return v * (d - sum); }, [](float v, float d) { return d * v; });
}

/// softmax_backward() of rows that fit a block.
void softmax_backward_of_short(Input y, bool log, Input dy, Output dx, std::int64_t rows, std::int64_t channels) {
  Reader y_block(y);
  Reader dy_block(dy);
  Writer dx_block(dx);
  OfLines sums;
  visit_softmax_backward(log, [&](auto gradient, auto summand) {
    for_each_lines(rows, channels, [&](std::int64_t first, std::int64_t count) {
      const std::int64_t n = count * channels;
      const float* ys = y_block(first * channels, n);
      const float* dys = dy_block(first * channels, n);
      for (std::int64_t row = 0; row < count; ++row) {
        const float* ys_of_row = ys + row * channels;
        const float* dys_of_row = dys + row * channels;
        sums.set(row, channels,
                 float_sum_block(channels, [=](std::int64_t i) { return summand(ys_of_row[i], dys_of_row[i]); }));
      }
      transform_block(n, dx_block(first * channels, n), gradient, ys, dys, sums.values());
      dx_block.commit();
    });
  });
}

void softmax_backward(Input y, bool log, Input dy, Output dx, std::int64_t rows, std::int64_t channels) {
  if (channels <= kBlock) return softmax_backward_of_short(y, log, dy, dx, rows, channels);
  Reader y_block(y);
  Reader dy_block(dy);
  Writer dx_block(dx);
  visit_softmax_backward(log, [&](auto gradient, auto summand) {
    for (std::int64_t first = 0; first < rows * channels; first += channels) {
      float sum = 0;
      for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
        sum += sum_of_terms(n, summand, y_block(first + begin, n), dy_block(first + begin, n));
      });
      for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
        transform_block(
            n, dx_block(first + begin, n), [=](float v, float d) { return gradient(v, d, sum); },
            y_block(first + begin, n), dy_block(first + begin, n));
        dx_block.commit();
      });
    }
  });
}

/// softmax_backward() over the rows of width <= kBlock columns.
void softmax_backward_columns(Input y, bool log, Input dy, Output dx, std::int64_t rows, std::int64_t stride,
                              std::int64_t width) {
  const RowGroups groups(rows, stride, width);
  Reader y_block(y);
  Reader dy_block(dy);
  Writer dx_block(dx);
  alignas(64) float sums[kBlock];
  std::fill_n(sums, width, 0.0f);
  visit_softmax_backward(log, [&](auto gradient, auto summand) {
    groups.for_each([&](std::int64_t first, std::int64_t count, std::int64_t n) {
      const float* ys = y_block(first, n);
      const float* dys = dy_block(first, n);
      for (std::int64_t r = 0; r < count; ++r, ys += width, dys += width) {
        LOCKSTEP_VECTORIZE for (std::int64_t i = 0; i < width; ++i) sums[i] += summand(ys[i], dys[i]);
      }
    });
    groups.for_each([&](std::int64_t first, std::int64_t count, std::int64_t n) {
      const float* ys = y_block(first, n);
      const float* dys = dy_block(first, n);
      float* to = dx_block(first, n);
      for (std::int64_t r = 0; r < count; ++r) {
        transform_block(width, to + r * width, gradient, ys + r * width, dys + r * width, &sums[0]);
      }
      dx_block.commit();
    });
  });
}

double cross_entropy(Input logits, const std::int64_t* targets, float smoothing, float* log_sum_exp, std::int64_t rows,
                     std::int64_t channels) {
  Reader x_block(logits);
  double loss = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * channels;
    const auto [max, sum] = sum_exponentials(x_block, first, channels);
    const float log_sum = std::log(sum);
    log_sum_exp[row] = max + log_sum;
    // Distances from the maximum are exact where the logits themselves are large.
    const float of_target = max - *x_block(first + targets[row], 1);
    float distance = of_target;
    if (smoothing > 0) {
      float sum_of_distances = 0;
      for_each_block(channels, [&, max = max](std::int64_t begin, std::int64_t n) {
        const float* values = x_block(first + begin, n);
        sum_of_distances += float_sum_block(n, [=](std::int64_t i) { return max - values[i]; });
      });
      distance = (1.0f - smoothing) * of_target + smoothing * (sum_of_distances / static_cast<float>(channels));
    }
    loss += static_cast<double>(distance + log_sum);
  }
  return loss;
}

void cross_entropy_backward(Input logits, const std::int64_t* targets, float smoothing, const float* log_sum_exp,
                            float factor, Output dlogits, std::int64_t rows, std::int64_t channels) {
  Reader x_block(logits);
  Writer dx_block(dlogits);
  const float everywhere = smoothing / static_cast<float>(channels);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row * channels;
    for_each_block(channels, [&](std::int64_t begin, std::int64_t n) {
      float* to = dx_block(first + begin, n);
      const float log_sum = log_sum_exp[row];
      transform_block(
          n, to, [=](float v) { return factor * (fast_exp(v - log_sum) - everywhere); }, x_block(first + begin, n));
      const std::int64_t target = targets[row] - begin;
      if (target >= 0 && target < n) to[target] -= factor * (1.0f - smoothing);
      dx_block.commit();
    });
  }
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
