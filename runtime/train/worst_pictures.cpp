// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/worst_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "runtime/base/files/durable_file.h"
#include "runtime/data/dataset.h"
#include "runtime/train/prediction.h"

namespace lockstep::train {

namespace {

/// A probability that rounds to 0 has no logarithm.
double loss_of(double probability) { return -std::log(std::max(probability, 1e-30)); }

/// The pictures of an earlier evaluation, "01_loss_2.301_....png", are not this one's.
void remove_earlier(const std::filesystem::path& folder) {
  std::error_code hidden;
  if (!std::filesystem::is_directory(folder, hidden)) return;
  for (const std::string& name : list_directory(folder.string())) {
    if (name.ends_with(".png") && name.substr(std::min<std::size_t>(2, name.size())).starts_with("_loss_")) {
      std::filesystem::remove(folder / name, hidden);
    }
  }
}

}  // namespace

WorstPictures::WorstPictures(const Task& task, const data::NormalizeOptions& normalize, std::int64_t count,
                             std::vector<std::string> class_names)
    : normalize_(normalize),
      count_(static_cast<std::size_t>(count)),
      height_(task.model_input().sample_shape[0]),
      width_(task.model_input().sample_shape[1]),
      class_names_(std::move(class_names)) {}

void WorstPictures::add(const data::Batch& batch, const Tensor& output, std::int64_t first) {
  const std::int64_t rows = batch.input.size(0);
  std::vector<float> values = floats_of(output);
  const std::size_t width = values.size() / static_cast<std::size_t>(rows);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t target = batch.target.as<std::int64_t>()[static_cast<std::size_t>(i)];
    if (target == data::kIgnoredLabel) continue;
    const auto row = std::span(values).subspan(static_cast<std::size_t>(i) * width, width);
    const std::int64_t answer = class_of(row);
    softmax(row);
    const double probability = row[static_cast<std::size_t>(target)];
    // A NaN is worse than any.
    const Answer found{std::isnan(probability) ? -1.0 : probability, first + i, target, answer};
    if (mine_.size() == count_ && !(found < mine_.rbegin()->first)) continue;
    mine_[found] = pixels_of(batch.input.rows(i, i + 1), normalize_);
    if (mine_.size() > count_) mine_.erase(std::prev(mine_.end()));
  }
}

std::vector<WorstPictures::Answer> WorstPictures::worst_of_all(comm::Communicator& communicator) const {
  std::string text;
  for (const auto& [answer, picture] : mine_) {
    text += fmt::format("{} {} {} {}\n", answer.probability, answer.sample, answer.target, answer.answer);
  }
  std::vector<Answer> all;
  for (const std::string& of_rank : communicator.all_gather_text(text)) {
    std::istringstream in(of_rank);
    for (Answer each; in >> each.probability >> each.sample >> each.target >> each.answer;) all.push_back(each);
  }
  std::ranges::sort(all);
  if (all.size() > count_) all.resize(count_);
  return all;
}

std::string WorstPictures::name_of(std::int64_t label) const {
  if (label < 0) return "nothing";
  const auto at = static_cast<std::size_t>(label);
  std::string name = at < class_names_.size() ? class_names_[at] : std::to_string(label);
  // Part of a file's name.
  std::ranges::replace_if(
      name, [](unsigned char c) { return c < 128 && std::isalnum(c) == 0 && c != '-'; }, '_');
  return name.substr(0, 60);
}

void WorstPictures::write(const std::filesystem::path& folder, std::int64_t, comm::Communicator& communicator) const {
  if (communicator.rank() == 0) remove_earlier(folder);
  int place = 0;
  for (const Answer& each : worst_of_all(communicator)) {
    const auto found = mine_.find(each);
    const std::string how =
        each.answer == each.target ? name_of(each.target) : name_of(each.target) + "_taken_for_" + name_of(each.answer);
    const std::string name =
        fmt::format("{:02}_loss_{:.3f}_{}_sample_{:06}.png", ++place, loss_of(each.probability), how, each.sample);
    write_picture(folder / name, found == mine_.end() ? nullptr : &found->second, height_, width_, communicator);
  }
}

}  // namespace lockstep::train
