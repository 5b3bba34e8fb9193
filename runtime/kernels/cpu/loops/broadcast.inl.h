// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/kernels/cpu/loops/channels.inl.h"

namespace lockstep::kernels::cpu::LOCKSTEP_ISA {
namespace {

/// Reads an operand block by block as the output walks over it: in place where its elements lie as those of the output
/// do, at least for the block, else brought together in a buffer.
class BroadcastReader {
 public:
  /// Blocks begin at element `begin` of the output.
  BroadcastReader(const Operand& operand, std::int64_t begin)
      : in_(operand.in),
        walk_(*operand.walk),
        strides_(operand.walk->strides[operand.number]),
        is_whole_(operand.walk->is_whole(operand.number)),
        at_(is_whole_ ? begin : operand.walk->offset(operand.number, begin)) {
    if (is_whole_) return;
    for (int d = walk_.rank - 1; d >= 0; --d) {
      place_[d] = begin % walk_.extents[d];
      begin /= walk_.extents[d];
    }
  }

  /// The next n <= kBlock elements, which are those from wherever the last call ended; valid until the next call.
  const float* operator()(std::int64_t, std::int64_t n) {
    if (!is_whole_) return brought_together(n);
    const float* block = in_place_or_widened(n);
    at_ += n;
    return block;
  }

  /// The elements of the next `runs` <= kBlock runs, one each, which it passes; valid until the next call. The operand
  /// must repeat an element over the last dimension and stand at the beginning of a run.
  const float* elements_of_runs(std::int64_t runs) {
    const int before = walk_.rank - 2;
    for (std::int64_t done = 0; done < runs;) {
      const std::int64_t some = before < 0 ? 1 : std::min(runs - done, walk_.extents[before] - place_[before]);
      const std::int64_t step = before < 0 ? 0 : strides_[before];
      if (step == 1) {
        widen(in_.from(at_), some, buffer_ + done);
      } else {
        widen(in_.from(at_), 1, buffer_ + done);
        for (std::int64_t r = 1; r < some; ++r) {
          if (step == 0) {
            buffer_[done + r] = buffer_[done];
          } else {
            widen(in_.from(at_ + r * step), 1, buffer_ + done + r);
          }
        }
      }
      if (before >= 0) advance(before, some);
      done += some;
    }
    return buffer_;
  }

 private:
  /// Where the next n elements do not lie as those of the output do.
  const float* brought_together(std::int64_t n) {
    const int last = walk_.rank - 1;
    if (is_in_buffer(n)) {
      advance(last - 1, n / walk_.extents[last]);
      return buffer_;
    }
    if (strides_[last] == 1 && place_[last] + n <= walk_.extents[last]) {
      const float* block = in_place_or_widened(n);
      advance(last, n);
      return block;
    }
    in_buffer_at_ = place_[last] == 0 ? at_ : -1;
    in_buffer_ = n;
    for (std::int64_t done = 0; done < n;) {
      const std::int64_t extent = walk_.extents[last];
      if (place_[last] > 0 || n - done < extent) {
        const std::int64_t run = std::min(n - done, extent - place_[last]);
        bring_runs(buffer_ + done, 1, run, 0);
        advance(last, run);
        done += run;
      } else if (last == 0) {
        bring_runs(buffer_ + done, 1, extent, 0);
        done += extent;
      } else {
        // Whole runs, as far as the dimension before goes.
        const std::int64_t runs = std::min((n - done) / extent, walk_.extents[last - 1] - place_[last - 1]);
        bring_runs(buffer_ + done, runs, extent, strides_[last - 1]);
        advance(last - 1, runs);
        done += runs * extent;
      }
    }
    return buffer_;
  }

  /// Whether the next n elements are whole runs, each the same one, that the buffer has already.
  bool is_in_buffer(std::int64_t n) const {
    const int last = walk_.rank - 1;
    if (last == 0 || strides_[last - 1] != 0 || at_ != in_buffer_at_ || n > in_buffer_) return false;
    const std::int64_t extent = walk_.extents[last];
    return place_[last] == 0 && n % extent == 0 && n / extent <= walk_.extents[last - 1] - place_[last - 1];
  }

  const float* in_place_or_widened(std::int64_t n) {
    if (in_.dtype == DType::kFloat32) return static_cast<const float*>(in_.data) + at_;
    widen(in_.from(at_), n, buffer_);
    return buffer_;
  }

  /// Runs of `run` elements of the last dimension, one behind the other; they begin `step` apart. Runs of few elements
  /// are written in whole vectors, the last of which the next run overwrites.
  void bring_runs(float* to, std::int64_t runs, std::int64_t run, std::int64_t step) {
    if (strides_[walk_.rank - 1] == 0) {
      alignas(64) float values[kBlock];
      const bool neighbours = runs == 1 || step == 1;
      if (neighbours) widen(in_.from(at_), runs, values);
      for (std::int64_t r = 0; r < runs; ++r, to += run) {
        if (!neighbours) widen(in_.from(at_ + r * step), 1, values + r);
        fill_lanes(to, run, values[r]);
      }
      return;
    }
    const float* const first = to;
    for (std::int64_t r = 0; r < runs; ++r, to += run) {
      if (r == 0 || step != 0) {
        widen(in_.from(at_ + r * step), run, to);
      } else {
        for (std::int64_t i = 0; i < run; i += kLanes) store_float(to + i, load_float(first + i));
      }
    }
  }

  /// Past so many places of dimension d, at most to its end.
  void advance(int d, std::int64_t places) {
    place_[d] += places;
    at_ += places * strides_[d];
    for (; d > 0 && place_[d] == walk_.extents[d]; --d) {
      at_ += strides_[d - 1] - walk_.extents[d] * strides_[d];
      place_[d] = 0;
      ++place_[d - 1];
    }
  }

  Input in_;
  const BroadcastWalk& walk_;
  const std::int64_t* strides_;
  bool is_whole_;
  std::int64_t at_;                           ///< the element that comes next, counted from the operand's first
  std::int64_t place_[Shape::kMaxRank] = {};  ///< of that in the output
  std::int64_t in_buffer_at_ = -1;  ///< where the runs begin of which the buffer has the first elements; or -1
  std::int64_t in_buffer_ = 0;      ///< elements
  alignas(64) float buffer_[kBlock + kLanes];
};

/// Whether the operand's elements lie as those of the output do.
bool is_whole(const Operand& operand) { return operand.walk->is_whole(operand.number); }

/// Whether the operand's elements are one row of the output that comes again and again.
bool is_one_row(const Operand& operand) {
  const std::int64_t* const strides = operand.walk->strides[operand.number];
  const int last = operand.walk->rank - 1;
  return strides[last] == 1 && std::all_of(strides, strides + last, [](std::int64_t stride) { return stride == 0; });
}

/// out[i] = f(in[i], value) for a run of elements of one format, behind a pointer as BlockLoop is.
using RunLoop = void (*)(std::int64_t n, void* out, const void* in, float value);

template <class F>
RunLoop run_loop(DType dtype) {
  RunLoop loop = nullptr;
  visit_format(dtype, [&]<class Format>(Format) {
    loop = [](std::int64_t n, void* out, const void* in, float value) {
      using Element = typename Format::Element;
      transform_tiles<Format>(
          n, static_cast<Element*>(out), false, [value](float v) { return F()(v, value); },
          Source<Format>{static_cast<const Element*>(in)});
    };
  });
  return loop;
}

/// Loops of a function where one operand repeats an element over the last dimension.
struct RepeatingLoops {
  BlockLoop blocks;    ///< f(x, repeated)
  RunLoop of_floats;   ///< as it; of float32
  RunLoop of_results;  ///< of the result's dtype
};

/// out[i] = f(x, repeated): whole runs of what is repeated one after the other, what is left of a run at either end of
/// the elements as transform_blocks() would.
void transform_runs(std::int64_t begin, std::int64_t total, Output out, const RepeatingLoops& loops, const Operand& x,
                    const Operand& repeated) {
  const BroadcastWalk& walk = *x.walk;
  const std::int64_t run = walk.extents[walk.rank - 1];
  const std::int64_t lead = std::min((run - begin % run) % run, total);
  const std::int64_t runs = (total - lead) / run;
  transform_blocks(lead, out, loops.blocks, BroadcastReader(x, begin), BroadcastReader(repeated, begin));
  const bool one_row = is_one_row(x);
  const bool in_registers = x.in.dtype == out.dtype && (one_row || is_whole(x));
  BroadcastReader x_reader(x, begin + lead), repeated_reader(repeated, begin + lead);
  Writer writer(out);
  // Otherwise a block has several whole runs, or a run several blocks.
  const std::int64_t at_once = in_registers ? kBlock : std::max<std::int64_t>(kBlock / run, 1);
  for (std::int64_t first = 0; first < runs; first += at_once) {
    const std::int64_t count = std::min(at_once, runs - first);
    const std::int64_t done = lead + first * run;
    const float* const values = repeated_reader.elements_of_runs(count);
    if (in_registers) {
      for (std::int64_t r = 0; r < count; ++r) {
        const std::int64_t at = done + r * run;
        loops.of_results(run, out.from(at).data, x.in.from(one_row ? 0 : begin + at).data, values[r]);
      }
      continue;
    }
    for_each_block(count * run, [&](std::int64_t at, std::int64_t n) {
      float* to = writer(done + at, n);
      const float* from = x_reader(at, n);
      const std::int64_t extent = std::min(run, n);
      const float* value = values;
      for (std::int64_t i = 0; i < n; i += extent) loops.of_floats(extent, to + i, from + i, *value++);
      writer.commit();
    });
  }
  const std::int64_t done = lead + runs * run;
  transform_blocks(total - done, out.from(done), loops.blocks, BroadcastReader(x, begin + done),
                   BroadcastReader(repeated, begin + done));
}

/// Whether the operand repeats an element over a last dimension long enough for transform_runs().
bool repeats(const Operand& operand) {
  const BroadcastWalk& walk = *operand.walk;
  constexpr std::int64_t kEnough = 32;
  return walk.rank > 0 && walk.extents[walk.rank - 1] >= kEnough && walk.strides[operand.number][walk.rank - 1] == 0;
}

/// A function of two numbers, and the same with its operands exchanged.
template <class Function>
struct InOrder {
  float operator()(float x, float y) const { return Function::value(x, y); }
};

template <class Function>
struct Exchanged {
  float operator()(float x, float y) const { return Function::value(y, x); }
};

void binary(Binary which, const Operand& a, const Operand& b, Output out, std::int64_t begin, std::int64_t n) {
  visit_binary(which, [&]<class Function>(Function) {
    const InOrder<Function> function;
    if (is_whole(a) && is_whole(b)) return transform(n, out, function, a.in.from(begin), b.in.from(begin));
    const auto with_runs = [&]<class F>(const F& f, const Operand& x, const Operand& repeated) {
      const RepeatingLoops loops{loop_of<2>(f), run_loop<F>(DType::kFloat32), run_loop<F>(out.dtype)};
      transform_runs(begin, n, out, loops, x, repeated);
    };
    // GCC makes no vector code of a power that has one exponent for the whole loop.
    if constexpr (Function::kBinary != Binary::kPow) {
      if (repeats(b)) return with_runs(function, a, b);
      if (repeats(a)) return with_runs(Exchanged<Function>(), b, a);
    }
    transform_blocks(n, out, loop_of<2>(function), BroadcastReader(a, begin), BroadcastReader(b, begin));
  });
}

/// holds ? x : y, whatever the bits mean. Bit operations, since GCC would branch at a conditional expression; and a
/// byte, since GCC makes no vector code of bool.
template <class Bits>
[[gnu::always_inline]] inline Bits choose(std::uint8_t holds, Bits x, Bits y) {
  return static_cast<Bits>(y ^ ((x ^ y) & static_cast<Bits>(-static_cast<Bits>(holds))));
}

/// out[i] = condition[i] ? a[i] : b[i]
template <class Bits>
void select(const std::uint8_t* condition, const void* a, const void* b, void* out, std::int64_t n) {
  const auto chosen = [](std::uint8_t holds, Bits x, Bits y) { return choose(holds, x, y); };
  transform_block(n, static_cast<Bits*>(out), chosen, condition, static_cast<const Bits*>(a),
                  static_cast<const Bits*>(b));
}

/// select() where a or b is broadcast.
void select_broadcast(const std::uint8_t* condition, const Operand& a, const Operand& b, Output out, std::int64_t begin,
                      std::int64_t total) {
  BroadcastReader a_reader(a, begin), b_reader(b, begin);
  Writer writer(out);
  for_each_block(total, [&](std::int64_t at, std::int64_t n) {
    transform_block(
        n, writer(at, n),
        [](std::uint8_t holds, float x, float y) {
          return std::bit_cast<float>(choose(holds, std::bit_cast<std::uint32_t>(x), std::bit_cast<std::uint32_t>(y)));
        },
        condition + at, a_reader(at, n), b_reader(at, n));
    writer.commit();
  });
}

void ternary(const TernaryFunction& which, const Operand& a, const Operand& b, const Operand& c, Output out,
             std::int64_t begin, std::int64_t n) {
  if (which.kind == Ternary::kWhere && is_whole(a)) {
    const auto* condition = static_cast<const std::uint8_t*>(a.in.data) + begin;
    if (!is_whole(b) || !is_whole(c)) return select_broadcast(condition, b, c, out, begin, n);
    const auto select_bits = size_of(out.dtype) == 2 ? select<std::uint16_t> : select<std::uint32_t>;
    return select_bits(condition, b.in.from(begin).data, c.in.from(begin).data, out.data, n);
  }
  visit_ternary(which, [&]<class Function>(Function function) {
    const auto value = [function](float x, float y, float z) { return function.value(x, y, z); };
    if (is_whole(a) && is_whole(b) && is_whole(c)) {
      return transform(n, out, value, a.in.from(begin), b.in.from(begin), c.in.from(begin));
    }
    transform_blocks(n, out, loop_of<3>(value), BroadcastReader(a, begin), BroadcastReader(b, begin),
                     BroadcastReader(c, begin));
  });
}

void expand(const Operand& in, Output out, std::int64_t begin, std::int64_t n) {
  const auto same = [](float x) { return x; };
  transform_blocks(n, out, loop_of<1>(same), BroadcastReader(in, begin));
}

void binary_with_number(Binary which, Input x, float number, bool number_first, Output out, std::int64_t total) {
  if (which == Binary::kPow && !number_first) {
    const bool done =
        visit_plain_power(static_cast<double>(number), [&]<class F>(F) { transform(total, out, F(), x); });
    if (done) return;
  }
  // A block of the number: in a loop with one that is the same in every turn, GCC makes vector code of fewer functions.
  alignas(64) float numbers[kBlock];
  std::fill_n(numbers, kBlock, number);
  const auto same = [&numbers](std::int64_t, std::int64_t) -> const float* { return numbers; };
  visit_binary(which, [&]<class Function>(Function) {
    const InOrder<Function> function;
    if (number_first) {
      transform_blocks(total, out, loop_of<2>(function), same, Reader(x));
    } else {
      transform_blocks(total, out, loop_of<2>(function), Reader(x), same);
    }
  });
}

void binary_channels(Binary which, Input a, const float* b, Output out, std::int64_t rows, std::int64_t channels) {
  const Tiling tiling(rows, channels);
  const TiledParameter tiled_b(b, tiling);
  Reader a_block(a);
  Writer out_block(out);
  const auto run = [&](BlockLoop loop) {
    for_each_tile(tiling, [&](std::int64_t begin, std::int64_t column, std::int64_t n) {
      const float* const operands[] = {a_block(begin, n), tiled_b.data() + column};
      loop.run(loop.function, n, out_block(begin, n), operands);
      out_block.commit();
    });
  };
  visit_binary(which, [&]<class Function>(Function) { run(loop_of<2>(InOrder<Function>())); });
}

}  // namespace
}  // namespace lockstep::kernels::cpu::LOCKSTEP_ISA
