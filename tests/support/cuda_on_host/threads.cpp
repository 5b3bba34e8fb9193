// SPDX-License-Identifier: Apache-2.0
#include "tests/support/cuda_on_host/threads.h"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/gpu.h"
#include "tests/support/emulated_gpu/emulation.h"

// AddressSanitizer's, where it is linked in: it has to know on which stack the thread runs.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** left, const void* bottom, std::size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* here, const void** left_bottom, std::size_t* left_bytes);
}

namespace lockstep::cuda_on_host {

thread_local Place place;

namespace {

constexpr std::size_t kStackBytes = 128 << 10;
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxDeep = 64;     // of a block's z
constexpr unsigned kMaxHigh = 65535;  // of a grid's y and z
constexpr unsigned kMaxWide = std::numeric_limits<std::int32_t>::max();
/// Reads as NaN in every floating dtype.
constexpr std::uint64_t kPoison = ~std::uint64_t{0};

/// A stack that the host thread leaves and comes back to.
struct Stack {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* sanitizer = nullptr;  ///< what AddressSanitizer keeps of it

  void leave_for(const Stack& other) {
    if (__sanitizer_start_switch_fiber != nullptr)
      __sanitizer_start_switch_fiber(&sanitizer, other.bottom, other.bytes);
  }
  /// `from`: learns where it is.
  void arrive(Stack& from) const {
    if (__sanitizer_finish_switch_fiber == nullptr) return;
    __sanitizer_finish_switch_fiber(sanitizer, &from.bottom, &from.bytes);
  }
};

enum class State { kReady, kAtBarrier, kInExchange, kEnded };

/// Where a context goes on, as __builtin_setjmp() writes it: the stack, the frame and the address. The function that
/// calls it saves all other registers itself. C's longjmp() looks for cleanup handlers too, which took an eighth of the
/// time.
using Point = void* [5];

/// A CUDA thread: a context of its own on the host thread that runs the block. It begins by setcontext(); from then on
/// the contexts change without a call of the kernel.
struct Fiber {
  Point context;
  std::unique_ptr<std::byte[]> memory = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  Stack stack{memory.get(), kStackBytes};
  State state = State::kEnded;
  bool started = false;
  uint3 thread;
  unsigned exchanges = 0;
};

struct Warp {
  /// Two of each lane: a lane may write its next value while another has yet to read the last one.
  std::array<std::array<std::uint64_t, kWarp>, 2> values = {};
};

/// The block that a host thread runs.
class Block {
 public:
  void run(const char* kernel, dim3 block, const std::function<void()>& thread, std::minstd_rand& random);

  void pause(State state) {
    Fiber& fiber = *current_;
    fiber.state = state;
    if (__builtin_setjmp(fiber.context) == 0) {
      fiber.stack.leave_for(scheduler_stack_);
      __builtin_longjmp(scheduler_, 1);
    }
    current_->stack.arrive(scheduler_stack_);
  }
  bool any(bool predicate) {
    votes_ = votes_ || predicate;
    pause(State::kAtBarrier);
    return outcome_;
  }
  void poison_shared(void* variable, std::size_t bytes) {
    if (std::find(shared_.begin(), shared_.end(), variable) != shared_.end()) return;
    shared_.push_back(variable);
    std::memset(variable, static_cast<int>(kPoison & 0xff), bytes);
  }
  void exchange(void* value, std::size_t bytes, unsigned lane) {
    const std::size_t number = static_cast<std::size_t>(current_ - fibers_.data());
    Warp& warp = warps_[number / kWarp];
    const unsigned turn = current_->exchanges++ % 2;
    std::memcpy(&warp.values[turn][number % kWarp], value, bytes);
    pause(State::kInExchange);
    std::memcpy(value, &warp.values[turn][lane % kWarp], bytes);
  }

 private:
  static void enter();
  void resume(Fiber& fiber);
  bool wake_warp(std::size_t warp);
  bool wake_all();
  [[noreturn]] void give_up(const std::exception_ptr& failure);

  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::size_t count_ = 0;
  Point scheduler_;
  Stack scheduler_stack_;
  Fiber* current_ = nullptr;
  const std::function<void()>* thread_ = nullptr;
  std::exception_ptr failure_;
  std::vector<const void*> shared_;  ///< variables that this block's threads have come to
  bool votes_ = false;
  bool outcome_ = false;
};

thread_local Block running;

void Block::enter() {
  Block& block = running;
  block.current_->stack.arrive(block.scheduler_stack_);
  for (;;) {
    try {
      (*block.thread_)();
    } catch (...) {
      block.failure_ = std::current_exception();
    }
    block.pause(State::kEnded);
  }
}

void Block::resume(Fiber& fiber) {
  current_ = &fiber;
  place.thread = fiber.thread;
  if (__builtin_setjmp(scheduler_) != 0) return scheduler_stack_.arrive(current_->stack);
  scheduler_stack_.leave_for(fiber.stack);
  if (fiber.started) __builtin_longjmp(fiber.context, 1);
  fiber.started = true;
  ucontext_t first = {};
  getcontext(&first);
  first.uc_stack.ss_sp = fiber.memory.get();
  // Stacks that begin at one offset within a page would displace one another in the processor's first cache.
  const std::size_t colour = static_cast<std::size_t>(current_ - fibers_.data()) * 7 % 64;
  first.uc_stack.ss_size = kStackBytes - colour * 64;
  makecontext(&first, &Block::enter, 0);
  setcontext(&first);
}

/// Ends an exchange that all lanes have come to.
bool Block::wake_warp(std::size_t warp) {
  const std::size_t end = std::min(count_, (warp + 1) * kWarp);
  bool any = false;
  for (std::size_t i = warp * kWarp; i < end; ++i) {
    if (fibers_[i].state == State::kEnded) continue;
    if (fibers_[i].state != State::kInExchange) return false;
    any = true;
  }
  for (std::size_t i = warp * kWarp; any && i < (warp + 1) * kWarp; ++i) {
    if (i < end && fibers_[i].state != State::kEnded) {
      fibers_[i].state = State::kReady;
    } else {
      for (auto& turn : warps_[warp].values) turn[i % kWarp] = kPoison;
    }
  }
  return any;
}

/// Ends a barrier that all threads have come to.
bool Block::wake_all() {
  bool any = false;
  for (std::size_t i = 0; i < count_; ++i) {
    if (fibers_[i].state == State::kEnded) continue;
    if (fibers_[i].state != State::kAtBarrier) return false;
    any = true;
  }
  outcome_ = votes_;
  votes_ = false;
  for (std::size_t i = 0; any && i < count_; ++i) {
    if (fibers_[i].state != State::kEnded) fibers_[i].state = State::kReady;
  }
  return any;
}

/// Its threads stay where they are: the next block has others.
void Block::give_up(const std::exception_ptr& failure) {
  fibers_.clear();
  std::rethrow_exception(failure);
}

void Block::run(const char* kernel, dim3 block, const std::function<void()>& thread, std::minstd_rand& random) {
  thread_ = &thread;
  count_ = std::size_t{block.x} * block.y * block.z;
  if (fibers_.size() < count_) fibers_ = std::vector<Fiber>(count_);  // none runs: contexts may move
  warps_.resize((count_ + kWarp - 1) / kWarp);
  std::size_t number = 0;
  for (unsigned z = 0; z < block.z; ++z) {
    for (unsigned y = 0; y < block.y; ++y) {
      for (unsigned x = 0; x < block.x; ++x, ++number) {
        fibers_[number].thread = {x, y, z};
        fibers_[number].state = State::kReady;
        fibers_[number].exchanges = 0;
      }
    }
  }
  votes_ = false;
  failure_ = nullptr;
  std::vector<std::size_t> order(warps_.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  const bool backwards = random() % 2 == 1;  // lanes of a warp
  shared_.clear();
  for (;;) {
    bool moved = false;
    for (const std::size_t warp : order) {
      do {
        const std::size_t begin = warp * kWarp, end = std::min(count_, begin + kWarp);
        for (std::size_t number = begin; number < end; ++number) {
          const std::size_t i = backwards ? begin + end - 1 - number : number;
          if (fibers_[i].state != State::kReady) continue;
          resume(fibers_[i]);
          moved = true;
          if (failure_) give_up(std::exchange(failure_, nullptr));
        }
      } while (wake_warp(warp));
    }
    if (wake_all()) continue;
    if (std::all_of(fibers_.begin(), fibers_.begin() + static_cast<std::ptrdiff_t>(count_),
                    [](const Fiber& fiber) { return fiber.state == State::kEnded; })) {
      return;
    }
    if (!moved)
      give_up(std::make_exception_ptr(
          UsageError(std::string(kernel) + ": threads of a block wait for others that never come")));
  }
}

/// Numbers of launches, which choose the order of blocks and warps.
std::minstd_rand& random() {
  thread_local std::minstd_rand generator(1);
  return generator;
}

}  // namespace

void run_grid(const char* kernel, dim3 grid, dim3 block, const std::function<void()>& thread) {
  const std::size_t threads = std::size_t{block.x} * block.y * block.z;
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > kMaxThreads || block.z > kMaxDeep || blocks == 0 || grid.x > kMaxWide ||
      grid.y > kMaxHigh || grid.z > kMaxHigh) {
    throw UsageError(std::string(kernel) + ": a GPU refuses a launch of " + std::to_string(blocks) + " blocks of " +
                     std::to_string(threads) + " threads");
  }
  std::vector<std::size_t> order(blocks);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random());
  place.block_extent = block;
  place.grid_extent = grid;
  for (const std::size_t number : order) {
    place.block = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                   static_cast<unsigned>(number / grid.x / grid.y)};
    running.run(kernel, block, thread, random());
  }
}

void wait_for_block() { running.pause(State::kAtBarrier); }
bool any_of_block(bool predicate) { return running.any(predicate); }
void exchange(void* value, std::size_t bytes, unsigned lane) { running.exchange(value, bytes, lane); }

void require_current(const void* stream) {
  if (stream == nullptr || stream != gpu::current_stream(gpu::emulation::device()).impl().get()) {
    throw UsageError("work for another stream than the calling thread's current one");
  }
}

void poison_shared(void* variable, std::size_t bytes) { running.poison_shared(variable, bytes); }

void append_launch(const char* kernel, dim3 grid, dim3 block, std::size_t shared_bytes, const void* stream,
                   std::function<void()> thread) {
  require_current(stream);
  if (shared_bytes != 0) throw UsageError(std::string(kernel) + " has dynamic shared memory");
  gpu::emulation::append(gpu::current_stream(gpu::emulation::device()),
                         [=, thread = std::move(thread)] { run_grid(kernel, grid, block, thread); });
}

}  // namespace lockstep::cuda_on_host
