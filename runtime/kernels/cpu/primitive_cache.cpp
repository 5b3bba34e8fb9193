// SPDX-License-Identifier: Apache-2.0
#include "runtime/kernels/cpu/primitive_cache.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/implementation.h"
#include "runtime/tensor/memory_room.h"

namespace lockstep::kernels::cpu {

namespace {

dnnl::stream& stream() {
  thread_local dnnl::stream stream(engine());
  return stream;
}

/// Code of a primitive, and operands that it packs, for each thread.
std::size_t room_for_onednn() {
  constexpr std::size_t kCode = std::size_t{16} << 20;
  constexpr std::size_t kOfAThread = std::size_t{4} << 20;
  return kCode + kOfAThread * static_cast<std::size_t>(omp_get_max_threads());
}

}  // namespace

void require_room_for_onednn() {
  if (!has_address_space(room_for_onednn())) throw no_room_for_onednn();
}

MemoryError no_room_for_onednn() {
  return MemoryError(
      fmt::format("cannot allocate {} bytes for oneDNN on the CPU: {}", room_for_onednn(), memory_facts()),
      "Use a smaller data.global_batch, more ranks, or a higher limit (ulimit -v).");
}

const dnnl::engine& engine() {
  static const dnnl::engine engine = [] {
    isa();  // sets oneDNN's limit, which holds only when it is set before the first primitive
    return dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return engine;
}

dnnl::memory::data_type data_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return dnnl::memory::data_type::f32;
    case DType::kBFloat16:
      return dnnl::memory::data_type::bf16;
    default:
      throw UsageError("oneDNN computes in float32 and bfloat16, not in " + std::string(name_of(dtype)));
  }
}

PrimitiveKey::PrimitiveKey() { add(omp_get_max_threads()); }

PrimitiveKey& PrimitiveKey::add(std::int64_t word) {
  if (count_ == kCapacity) throw UsageError("a primitive's key has more than " + std::to_string(kCapacity) + " words");
  words_[count_++] = word;
  return *this;
}

PrimitiveKey& PrimitiveKey::add(std::span<const std::int64_t> words) {
  for (const std::int64_t word : words) add(word);
  return *this;
}

PrimitiveKey& PrimitiveKey::add(const Tensor& tensor) {
  if (!tensor.defined()) return add(-1);
  return add(static_cast<std::int64_t>(tensor.dtype())).add(tensor.shape().rank()).add(tensor.shape().extents());
}

std::size_t PrimitiveKey::hash() const {
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    hash = (hash ^ static_cast<std::uint64_t>(words_[i])) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  }
  return hash;
}

bool operator==(const PrimitiveKey& a, const PrimitiveKey& b) {
  return std::equal(a.words_.begin(), a.words_.begin() + a.count_, b.words_.begin(), b.words_.begin() + b.count_);
}

const char* Primitive::kept_name(const char* implementation) {
  static std::mutex mutex;
  static std::set<std::string> names;
  const std::lock_guard lock(mutex);
  return names.emplace(implementation).first->c_str();
}

Primitive::Primitive(dnnl::primitive primitive, const dnnl::memory::desc& scratchpad, Arguments arguments,
                     const char* implementation)
    : primitive_(std::move(primitive)), scratchpad_bytes_(scratchpad.get_size()), implementation_(implementation) {
  const auto add = [this](int index, const dnnl::memory::desc& descriptor) {
    memories_.emplace_back(descriptor, engine(), nullptr);
    if (!descriptor.is_zero()) arguments_.push_back({index, memories_.back().get()});
  };
  for (const auto& [index, descriptor] : arguments) add(index, descriptor);
  if (scratchpad_bytes_ > 0) add(DNNL_ARG_SCRATCHPAD, scratchpad);
}

void Primitive::run(std::initializer_list<const void*> data) {
  auto memory = memories_.begin();
  for (const void* pointer : data) (memory++)->set_data_handle(const_cast<void*>(pointer));
  require_room_for_onednn();
  if (implementation_ != nullptr) note_implementation(implementation_);
  Storage scratchpad;
  if (scratchpad_bytes_ > 0) {
    scratchpad = Storage::allocate(scratchpad_bytes_, kCpu);
    memory->set_data_handle(scratchpad.data());
  }
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream().get(), static_cast<int>(arguments_.size()), arguments_.data());
  if (status == dnnl_out_of_memory) throw no_room_for_onednn();
  if (status != dnnl_success) {
    throw EnvironmentError("oneDNN failed to run a primitive, status " + std::to_string(static_cast<int>(status)));
  }
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

dnnl::primitive_attr adding() {
  dnnl::primitive_attr attributes = user_scratchpad();
  dnnl::post_ops sum;
  sum.append_sum();
  attributes.set_post_ops(sum);
  return attributes;
}

Primitive reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, bool add) {
  if (from == to && !add) return {};
  const dnnl::reorder::primitive_desc descriptor(engine(), from, engine(), to, add ? adding() : user_scratchpad());
  return Primitive::make<dnnl::reorder>(descriptor, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

}  // namespace lockstep::kernels::cpu
