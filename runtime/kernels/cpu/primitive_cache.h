// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/tensor/tensor.h"

namespace lockstep::kernels::cpu {

/// The process's oneDNN engine, limited to isa().
const dnnl::engine& engine();
dnnl::memory::data_type data_type(DType dtype);

/// Throws MemoryError where oneDNN may lack memory. It takes memory of its own, for code and packed operands, and
/// crashes where a limit of the address space refuses it. Called before any use of oneDNN. Costs nothing where there is
/// no limit.
void require_room_for_onednn();
MemoryError no_room_for_onednn();

/// Everything that oneDNN's choice of a primitive depends on: extents, dtypes, attributes, and the number of threads.
class PrimitiveKey {
 public:
  PrimitiveKey();

  /// Throws UsageError past the capacity, which holds every operation of the backend.
  PrimitiveKey& add(std::int64_t word);
  PrimitiveKey& add(std::span<const std::int64_t> words);
  PrimitiveKey& add(const Tensor& tensor);

  std::size_t hash() const;
  friend bool operator==(const PrimitiveKey& a, const PrimitiveKey& b);

 private:
  static constexpr std::size_t kCapacity = 48;

  std::array<std::int64_t, kCapacity> words_;
  std::size_t count_ = 0;
};

/// A oneDNN primitive with the memory objects that it runs on, so that a call only sets pointers. Belongs to one
/// thread. A default-constructed one does not exist.
class Primitive {
 public:
  using Arguments = std::initializer_list<std::pair<int, dnnl::memory::desc>>;

  Primitive() = default;
  /// For a primitive made with the scratchpad mode "user"; see user_scratchpad(). An argument with an empty descriptor,
  /// such as a bias that is not there, is left out.
  template <class Operation>
  static Primitive make(const typename Operation::primitive_desc& descriptor, Arguments arguments) {
    // A reorder only brings operands into the layout of what computes.
    const bool computes = !std::is_same_v<Operation, dnnl::reorder>;
    return Primitive(Operation(descriptor), descriptor.scratchpad_desc(), arguments,
                     computes ? kept_name(descriptor.impl_info_str()) : nullptr);
  }

  explicit operator bool() const { return !memories_.empty(); }
  /// Runs on these data, in the order of the arguments given to make(). Only outputs are written to.
  void run(std::initializer_list<const void*> data);

 private:
  Primitive(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad, Arguments arguments,
            const char* implementation);
  /// The same text, for as long as the process lives.
  static const char* kept_name(const char* implementation);

  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
  std::size_t scratchpad_bytes_ = 0;
  const char* implementation_ = nullptr;  ///< oneDNN's name of it; null: not to be noted
};

/// Attributes of a primitive whose scratch memory comes from the tensors' allocator.
dnnl::primitive_attr user_scratchpad();
/// The attributes of a primitive that adds to its output.
dnnl::primitive_attr adding();
/// Copies between two layouts, adding to `to` when `add`. Nothing where the layouts are equal and there is nothing to
/// add.
Primitive reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, bool add);

/// The plans that an operation has built, by shape. For use as a thread_local: primitives belong to one thread.
template <class Plan>
class PrimitiveCache {
 public:
  explicit PrimitiveCache(std::string operation) : operation_(std::move(operation)) {}

  /// The plan for `key`, made by `make()` the first time. Valid until the next call.
  template <class Make>
  Plan& get(const PrimitiveKey& key, Make make) {
    if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
    // Shapes without end, as with sequences of every length, must not fill the memory.
    if (plans_.size() >= kCapacity) plans_.clear();
    require_room_for_onednn();
    try {
      return plans_.emplace(key, make()).first->second;
    } catch (const dnnl::error& error) {
      if (error.status == dnnl_out_of_memory) throw no_room_for_onednn();
      throw EnvironmentError("oneDNN cannot run " + operation_ + ": " + error.what());
    }
  }

 private:
  static constexpr std::size_t kCapacity = 1024;

  struct Hash {
    std::size_t operator()(const PrimitiveKey& key) const { return key.hash(); }
  };

  std::string operation_;
  std::unordered_map<PrimitiveKey, Plan, Hash> plans_;
};

}  // namespace lockstep::kernels::cpu
