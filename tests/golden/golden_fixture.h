// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/kernels/backend_choice.h"
#include "runtime/kernels/geometry/spatial.h"
#include "tests/runtime/kernels/tensors.h"
#include "tests/support/devices.h"
#include "tests/support/source_folder.h"

namespace lockstep::kernels {

using nlohmann::json;

/// FAMILY.json, which make_golden.py wrote: groups of named cases.
inline const json& golden(std::string_view family = "core") {
  static std::map<std::string, json> files;
  const auto [file, is_new] = files.try_emplace(std::string(family));
  if (is_new) file->second = json::parse(std::ifstream(source_folder() + "/tests/golden/" + file->first + ".json"));
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
};

/// How many numbers are added up for one element.
struct Sums {
  std::int64_t terms = 1;

  /// No sum of a case with these tensors is longer than the largest of them.
  static Sums over(const std::vector<Tensor>& tensors) {
    Sums sums;
    for (const Tensor& tensor : tensors) sums.terms = std::max(sums.terms, tensor.numel());
    return sums;
  }
  /// Of gradients of gradients, which add up what was added up before.
  Sums twice() const { return {2 * terms}; }
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

  /// float64 within 1e-9; float32 as sums of `sums.terms` numbers are.
  void expect(const Tensor& found, const Tensor& exact, const Sums& sums = {},
              const std::source_location& where = std::source_location::current()) const {
    if (dtype() == DType::kFloat64) {
      return testing::expect_close(found, exact, {.relative = 1e-9, .absolute = 1e-9}, where);
    }
    const ::testing::ScopedTrace trace(where.file_name(), static_cast<int>(where.line()), "expect");
    ASSERT_EQ(found.shape(), exact.shape());
    const std::vector<double> values = testing::values_of(found), wanted = testing::values_of(exact);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double bound = testing::float32_bound(wanted[i], sums.terms, 1);
      EXPECT_TRUE(testing::is_close(values[i], wanted[i], {.relative = 0, .absolute = bound}))
          << "element " << i << " of " << values.size() << ": expected " << wanted[i] << ", found " << values[i]
          << ", allowed " << bound;
    }
  }
  void expect(const Tensor& found, const json& stored, const Sums& sums = {},
              const std::source_location& where = std::source_location::current()) const {
    expect(found, tensor_in(stored, DType::kFloat64), sums, where);
  }
};

inline const Computer kComputers[] = {
    {"reference_float64", DType::kFloat64, kCpu, reference_backend},
    {"cpu_float32", DType::kFloat32, kCpu, []() -> const Backend& { return kernels::backend(kCpu); }},
    {"cuda_float32", DType::kFloat32, devices::kGpu,
     []() -> const Backend& { return kernels::backend(devices::kGpu); }}};

inline std::string name_of_computer(const ::testing::TestParamInfo<Computer>& computer) { return computer.param.name; }

}  // namespace lockstep::kernels
