// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "runtime/train/pictures.h"

namespace lockstep::train {

/// Pictures of the samples of an evaluation with one class each whose class got the lowest probabilities, the worst
/// first: FOLDER/01_loss_4.213_cat_taken_for_dog_sample_000123.png and its like.
class WorstPictures final : public Pictures {
 public:
  WorstPictures(const Task& task, const data::NormalizeOptions& normalize, std::int64_t count,
                std::vector<std::string> class_names);

  void add(const data::Batch& batch, const Tensor& output, std::int64_t first) override;
  void write(const std::filesystem::path& folder, std::int64_t samples,
             comm::Communicator& communicator) const override;

 private:
  /// The worst one is the least.
  struct Answer {
    double probability = 0.0;  ///< of the sample's class
    std::int64_t sample = 0;
    std::int64_t target = 0;
    std::int64_t answer = 0;

    auto operator<=>(const Answer&) const = default;
  };

  std::vector<Answer> worst_of_all(comm::Communicator& communicator) const;
  std::string name_of(std::int64_t label) const;

  data::NormalizeOptions normalize_;
  std::size_t count_;
  std::int64_t height_;
  std::int64_t width_;
  std::vector<std::string> class_names_;
  std::map<Answer, std::vector<std::uint8_t>> mine_;  ///< this rank's worst ones: [height, width, 3]
};

}  // namespace lockstep::train
