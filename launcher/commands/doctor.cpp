// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/doctor.h"

#include <fmt/format.h>
#include <lockstep/version.h>
#include <sys/statvfs.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "comm/group/shared_memory/shared_file.h"
#include "comm/group/versions.h"
#include "launcher/commands/product_times.h"
#include "launcher/supervisor/mpirun.h"
#include "runtime/base/cores.h"
#include "runtime/base/error.h"
#include "runtime/job/versions.h"
#include "runtime/kernels/assign.h"
#include "runtime/kernels/cpu/isa.h"
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/versions.h"
#include "runtime/tensor/gpu.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

constexpr const char* kSharedMemory = "/dev/shm";
/// The gradients of a model of 50 million parameters, in 16 bits, for each of two ranks.
constexpr std::uint64_t kEnoughSharedMemory = std::uint64_t{200} << 20;

/// "7.5"
std::string capability_text(int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); }

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

class Examination {
 public:
  Json result() {
    found_["lockstep"] = kVersion;
    found_["trains_on"] = Json::array();
    examine_processor();
    examine_shared_memory();
    examine_mpirun();
    examine_libraries();
    examine_devices();
    found_["findings"] = findings_;
    return found_;
  }

 private:
  void lacks(const std::string& missing, const std::string& consequence, const std::string& advice) {
    findings_.push_back({{"missing", missing}, {"consequence", consequence}, {"advice", advice}});
  }

  /// Why the device does not compute; nothing where it does.
  static std::optional<std::string> defect(Device device) {
    constexpr std::int64_t kSize = 16;
    try {
      const kernels::MatrixProducts& matrix_products = kernels::MatrixProducts::on(device);
      const Tensor ones = Tensor::empty({kSize, kSize}, DType::kFloat16, device);
      const Tensor product = Tensor::empty({kSize, kSize}, DType::kFloat16, device);
      kernels::fill(ones, 1.0);
      matrix_products.matmul(ones, false, ones, false, {}, false, product);
      const double value = product.to(kCpu).item(kSize + 1);
      if (value == static_cast<double>(kSize)) return std::nullopt;
      return fmt::format("a product that is {} came out as {:f}", kSize, value);
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  static std::string float16_on_cpu() {
    if (kernels::cpu::isa() == kernels::cpu::Isa::kBaseline) return "converted in software: slower than float32";
    return "widened to float32 on the way: half the memory, no less time";
  }

  static std::string bfloat16_on_cpu() {
    if (!kernels::cpu::has_native_bfloat16()) return float16_on_cpu();
    return "multiplied by the processor's instructions where that is faster than float32";
  }

  void examine_processor() {
    found_["processor"] = {{"cores", usable_cores()},
                           {"isa", std::string(kernels::cpu::name_of(kernels::cpu::isa()))},
                           {"native_bfloat16", kernels::cpu::has_native_bfloat16()},
                           {"half_instructions", kernels::cpu::half_instructions()},
                           {"float16", float16_on_cpu()},
                           {"bfloat16", bfloat16_on_cpu()}};
    if (const auto problem = defect(kCpu)) {
      lacks("a processor that computes: " + *problem, "nothing can be trained on the CPU",
            "Reinstall oneDNN, and build for this machine.");
    } else {
      found_["trains_on"].push_back("cpu");
      measure_products();
    }
    if (kernels::cpu::isa() == kernels::cpu::Isa::kBaseline) {
      lacks("AVX2 or NEON", "16-bit types are converted in software, and everything on the CPU is several times slower",
            "Unset LOCKSTEP_CPU_ISA, or use a processor of 2013 or newer.");
    }
  }

  void measure_products() {
    Json& processor = found_["processor"];
    processor["product_times"] = nullptr;
    // In software one takes long, and how long is no question.
    if (kernels::cpu::isa() == kernels::cpu::Isa::kBaseline) return;
    processor["product_times"] = measure_product_times();
    processor["advice"] = advice_on(processor["product_times"]);
  }

  void examine_shared_memory() {
    struct statvfs disk {};
    const bool there = statvfs(kSharedMemory, &disk) == 0;
    const std::uint64_t unit = there ? disk.f_frsize : 0;
    const std::uint64_t available = unit * disk.f_bavail;
    found_["shared_memory"] = {{"path", kSharedMemory}, {"bytes", unit * disk.f_blocks}, {"free_bytes", available}};
    if (available >= kEnoughSharedMemory) return;
    if (comm::SharedFile(comm::MemoryName::Kind::kDescriptor, 1).name().kind != comm::MemoryName::Kind::kNone) return;
    lacks("memfd_create, and room in " + std::string(kSharedMemory) + " in its place",
          "ranks on CPUs of one machine copy large gradients to exchange them, which is slower",
          "Allow the system call in the container; or docker run --shm-size=1g, mount -o remount,size=1g /dev/shm.");
  }

  void examine_mpirun() {
    if (comm::mpi_version().empty()) {
      found_["mpirun"] = nullptr;
      lacks("MPI", "--nproc, --hosts and mpirun cannot start ranks; one rank, srun and torchrun work",
            "Build where Open MPI is installed (Debian: libopenmpi-dev openmpi-bin).");
      return;
    }
    try {
      found_["mpirun"] = find_mpirun().string();
    } catch (const EnvironmentError& error) {
      found_["mpirun"] = nullptr;
      lacks("mpirun", "--nproc and --hosts cannot start ranks; one rank, srun, torchrun and a foreign mpirun work",
            error.advice());
    }
  }

  void examine_libraries() {
    found_["libraries"] = {
        {"onednn", or_null(kernels::onednn_version())}, {"mpi", or_null(comm::mpi_version())},
        {"protobuf", or_null(job::protobuf_version())}, {"cuda", or_null(gpu::runtime_version())},
        {"cudnn", or_null(kernels::cudnn_version())},   {"cublas", or_null(kernels::cublas_version())},
        {"nccl", or_null(comm::nccl_version())}};
  }

  void examine_devices() {
    found_["cuda_driver"] = or_null(gpu::driver_version());
    found_["devices"] = Json::array();
    const int count = gpu::device_count();
    bool any = false;
    for (int i = 0; i < count; ++i) any = examine_device({DeviceType::kCuda, i}) || any;
    if (any) found_["trains_on"].push_back("cuda");
    if (count > 0) return;
    const bool built = !gpu::runtime_version().empty();
    lacks("a GPU: " + gpu::why_none(), "--device cuda is refused, and --device auto takes the CPU",
          built ? "Install NVIDIA's driver; in a container: docker run --gpus all."
                : "Build where CUDA, cuDNN and NCCL are installed.");
  }

  /// The name of the unit that computes a 16-bit dtype; null where none does.
  static Json units_of(int capability, int since) { return capability >= since ? Json("tensor cores") : Json(); }

  /// Whether it can be trained on.
  bool examine_device(Device device) {
    std::optional<std::string> problem;
    try {
      gpu::use_device(device);  // a device that is examined must not cost another one memory
      const gpu::Description description = gpu::describe(device);
      const int capability = description.compute_capability;
      found_["devices"].push_back({{"device", str(device)},
                                   {"name", description.name},
                                   {"compute_capability", capability_text(capability)},
                                   {"float16", units_of(capability, gpu::kFloat16TensorCores)},
                                   {"bfloat16", units_of(capability, gpu::kBFloat16TensorCores)},
                                   {"multiprocessors", description.multiprocessors},
                                   {"memory_bytes", description.total_memory},
                                   {"free_bytes", gpu::free_memory(device)}});
      if (capability < gpu::oldest_compute_capability()) {
        problem = "its compute capability is " + capability_text(capability) + ", this build's kernels begin at " +
                  capability_text(gpu::oldest_compute_capability());
      } else {
        problem = defect(device);
      }
    } catch (const std::exception& error) {
      problem = error.what();
    }
    if (!problem) return true;
    lacks(str(device) + " at work: " + *problem, "it cannot be trained on",
          "See what nvidia-smi says of it; CUDA_VISIBLE_DEVICES leaves a device out.");
    return false;
  }

  Json found_;
  Json findings_ = Json::array();
};

}  // namespace

Json examine() { return Examination().result(); }

bool can_train(const Json& examination) { return !examination["trains_on"].empty(); }

}  // namespace lockstep::launcher
