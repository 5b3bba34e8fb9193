// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/inputs/inputs.h"
#include "runtime/tensor/shape.h"

namespace lockstep::train {

/// The meaning of a sample's numbers.
enum class PredictionKind {
  kProbabilities,  ///< of each class
  kClasses,        ///< the most probable class of each position; -1 where there is none for a NaN
  kMask,           ///< probabilities of each element to belong to a mask
  kValues,         ///< of a regression
};

enum class TextFormat { kCsv, kJsonLines };

/// What a line of text says of a prediction.
struct PredictionLine {
  TextFormat format = TextFormat::kCsv;
  PredictionKind kind = PredictionKind::kProbabilities;
  std::int64_t numbers = 0;                   ///< of a prediction: classes, or values
  std::vector<std::string> class_names = {};  ///< in the order of the probabilities; none where they are not known
  std::int64_t top = 0;  ///< the most probable classes alone, this many, the most probable first; 0: all in their order
  bool of_inputs = false;      ///< lines begin with the input's place; else with the number of the sample
  std::string row_title = {};  ///< what inputs call a part of a file: "row"; none where a file is one sample
};

// Numbers are the shortest text that reads back as the same float32. The class of probabilities with a NaN is -1,
// without a name; JSON has null for a NaN. A line ends with '\n'.

/// The first line, of CSV; of JSON lines there is none.
std::string header_of(const PredictionLine& line);

/// Of a data set:
///   CSV   sample,class,name,p0,p1,...                     without probabilities sample,v0,v1,...
///   JSON  {"sample":0,"class":3,"name":"cat","probabilities":[...]}      {"sample":0,"values":[...]}
std::string line_of(const PredictionLine& line, std::int64_t sample, std::span<const float> numbers);

/// Of an input:
///   CSV   path,row,class,name,p0,p1,...                   path,row,prediction
///   JSON  {"path":"a.jpg","class":3,"name":"cat","probabilities":[...]}  {"path":"a.csv","row":0,"prediction":1.5}
/// With `top`: class,name,probability,class2,name2,probability2,... and "top":[{"class":3,"name":"cat",
/// "probability":0.9},...].
std::string line_of(const PredictionLine& line, const data::InputPlace& place, std::span<const float> numbers);

/// A cell of CSV, in quotes where RFC 4180 asks for them.
std::string csv_cell(std::string_view text);

/// Of a sample that cannot be read: CSV with empty cells; JSON {"sample":3,"error":"..."}.
std::string line_of_failure(const PredictionLine& line, std::int64_t sample, std::string_view error);
/// Of an input: JSON {"path":"a.jpg","error":"..."}.
std::string line_of_failure(const PredictionLine& line, const data::InputPlace& place, std::string_view error);

}  // namespace lockstep::train
