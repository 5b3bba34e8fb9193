// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/runtime/kernels/kernel_fixture.h"

namespace lockstep::kernels {

using nlohmann::json;

/// FAMILY.json, which make_golden.py wrote: groups of named cases.
inline const json& golden(const std::string& family = "core") {
  static std::map<std::string, json> files;
  const auto [file, is_new] = files.try_emplace(family);
  if (is_new) file->second = json::parse(std::ifstream(LOCKSTEP_SOURCE_DIR "/tests/golden/" + family + ".json"));
  return file->second;
}

/// Not-finite numbers are stored as null and as text.
inline double number_in(const json& stored) {
  if (stored.is_null()) return std::numeric_limits<double>::quiet_NaN();
  return stored.is_string() ? std::stod(stored.get<std::string>()) : stored.get<double>();
}

inline Tensor tensor_in(const json& stored, DType dtype) {
  const Shape shape{std::span<const std::int64_t>(stored["shape"].get<std::vector<std::int64_t>>())};
  std::vector<double> values;
  for (const json& value : stored["values"]) values.push_back(number_in(value));
  return testing::tensor_of(values, shape, dtype);
}

/// "stride": [2, 1] as the first entries of an array of three.
inline std::array<std::int64_t, 3> extents(const json& stored, std::int64_t rest) {
  std::array<std::int64_t, 3> result{rest, rest, rest};
  std::ranges::copy(stored.get<std::vector<std::int64_t>>(), result.begin());
  return result;
}

inline ConvGeometry conv_geometry(const json& stored) {
  return {.spatial_rank = stored["spatial_rank"],
          .stride = extents(stored["stride"], 1),
          .padding = extents(stored["padding"], 0),
          .dilation = extents(stored["dilation"], 1),
          .groups = stored["groups"]};
}

/// Who computes: the reference in float64, or the fast backend of a device in float32.
struct Computer {
  const char* name;
  DType dtype;
  Device device;
  const Backend& (*backend)();
  testing::Bounds bounds;
};

/// A test that runs each case of its groups on each computer.
class GoldenTest : public ::testing::TestWithParam<Computer> {
 protected:
  void SetUp() override {
    if (const auto reason = devices::why_skipped(device())) GTEST_SKIP() << *reason;
  }

  const Backend& backend() const { return GetParam().backend(); }
  Device device() const { return GetParam().device; }
  DType dtype() const { return GetParam().dtype; }

  template <class Run>
  void for_each_case(const std::string& group, Run run, const std::string& family = "core") const {
    for (const auto& [name, stored] : golden(family).at(group).items()) {
      SCOPED_TRACE(group + "." + name);
      run(stored);
    }
  }

  Tensor read(const json& stored) const { return read(stored, dtype()); }
  Tensor read(const json& stored, DType dtype) const { return tensor_in(stored, dtype).to(device()); }
  Tensor empty(const Shape& shape, DType dtype) const { return Tensor::empty(shape, dtype, device()); }
  Tensor empty_like(const Tensor& tensor) const { return empty(tensor.shape(), tensor.dtype()); }
  Tensor scalar(double value) const { return testing::tensor_of({value}, {}, dtype()).to(device()); }

  void expect(const Tensor& found, const json& stored,
              const std::source_location& where = std::source_location::current()) const {
    testing::expect_close(found, tensor_in(stored, DType::kFloat64), GetParam().bounds, where);
  }
};

// The files hold 15 digits; the reference adds in another order than PyTorch.
inline const Computer kComputers[] = {
    {"reference_float64", DType::kFloat64, kCpu, reference_backend, {.relative = 1e-9, .absolute = 1e-9}},
    {"cpu_float32", DType::kFloat32, kCpu, []() -> const Backend& { return kernels::backend(kCpu); }, {1e-5, 1e-5}},
    {"cuda_float32",
     DType::kFloat32,
     devices::kGpu,
     []() -> const Backend& { return kernels::backend(devices::kGpu); },
     {1e-5, 1e-5}}};

inline std::string name_of_computer(const ::testing::TestParamInfo<Computer>& computer) { return computer.param.name; }

}  // namespace lockstep::kernels
