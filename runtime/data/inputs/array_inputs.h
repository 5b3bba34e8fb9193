// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/formats/npy.h"
#include "runtime/data/inputs/inputs.h"
#include "runtime/tensor/input_spec.h"

namespace lockstep::data {

/// NumPy's arrays to predict: a sample each, of the samples' shape, or several, [N, the samples' shape].
class ArrayInputs : public Inputs {
 public:
  static constexpr std::array<std::string_view, 1> kEndings{".npy"};
  static constexpr std::string_view kRowTitle = "row";

  /// `of_bytes`: samples are bytes, of which the model sees shares of 255; an array of floats holds these shares.
  /// Throws UsageError for an array of another shape, and for tokens that are no integers.
  ArrayInputs(const std::vector<std::string>& files, const InputSpec& spec, bool of_bytes);

  std::int64_t size() const override { return size_; }
  Shape sample_shape() const override { return spec_.shape; }
  std::int64_t vocabulary() const override { return spec_.vocabulary; }
  InputPlace place(std::int64_t index) const override;
  std::string_view row_title() const override { return kRowTitle; }

 private:
  struct Part {
    std::string path;
    std::int64_t first = 0;  ///< sample
    std::optional<NpyArray> array = {};
    std::string failure = {};  ///< why there is no array
  };
  void read(std::int64_t index, const Sample& sample) const override;
  const Part& part_of(std::int64_t index) const;

  InputSpec spec_;
  bool of_bytes_;
  std::int64_t size_ = 0;
  std::vector<Part> parts_;
};

}  // namespace lockstep::data
