// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "launcher/commands/doctor.h"

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

std::string value_text(const Json& value) {
  if (value.is_null()) return "none";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string labelled(std::string name, const std::string& value) {
  constexpr std::size_t kWidth = 16;
  name.resize(std::max(name.size() + 1, kWidth), ' ');
  return name + value + "\n";
}

std::string gibibytes(const Json& bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", bytes.get<double>() / (1024.0 * 1024.0 * 1024.0));
  return text;
}

std::string device_text(const Json& device) {
  return value_text(device["name"]) + ", compute capability " + value_text(device["compute_capability"]) +
         ", tensor cores for " +
         (device["float16"].is_null()    ? "none"
          : device["bfloat16"].is_null() ? "float16, no bfloat16"
                                         : "float16 and bfloat16") +
         ", " + gibibytes(device["free_bytes"]) + " of " + gibibytes(device["memory_bytes"]) + " free";
}

std::string joined(const Json& names) {
  std::string text;
  for (const Json& name : names) text += (text.empty() ? "" : ", ") + value_text(name);
  return text.empty() ? "none" : text;
}

/// "64 x 64: float16 1.90, bfloat16 1.20 times float32's time", a line a size, and the advice.
std::string products_text(const Json& processor) {
  if (!processor.contains("advice")) return {};
  std::string text;
  for (const auto& [size, times] : processor["product_times"].items()) {
    std::string words;
    for (const auto& [dtype, time] : times.items()) words += (words.empty() ? "" : ", ") + dtype + " " + time.dump();
    text += labelled(text.empty() ? "products" : "", size + " x " + size + ": " + words + " times float32's time");
  }
  return text + labelled("", value_text(processor["advice"]));
}

}  // namespace

std::string doctor_text(const Json& examination) {
  const Json& processor = examination["processor"];
  const Json& memory = examination["shared_memory"];
  std::string text = labelled("lockstep", value_text(examination["lockstep"])) +
                     labelled("trains on", joined(examination["trains_on"]));
  text += labelled("processor", value_text(processor["cores"]) + " cores, " + value_text(processor["isa"]) +
                                    ", 16-bit instructions: " + joined(processor["half_instructions"]));
  for (const char* dtype : {"float16", "bfloat16"}) text += labelled(dtype, value_text(processor[dtype]));
  text += products_text(processor);
  for (const Json& device : examination["devices"]) text += labelled(value_text(device["device"]), device_text(device));
  text += labelled("CUDA driver", value_text(examination["cuda_driver"]));
  for (const auto& [name, version] : examination["libraries"].items()) text += labelled(name, value_text(version));
  text += labelled("mpirun", value_text(examination["mpirun"]));
  text += labelled(value_text(memory["path"]),
                   gibibytes(memory["free_bytes"]) + " of " + gibibytes(memory["bytes"]) + " free");
  for (const Json& finding : examination["findings"]) {
    text += "\nmissing: " + value_text(finding["missing"]) + "\n  " + value_text(finding["consequence"]) + "\n  → " +
            value_text(finding["advice"]) + "\n";
  }
  return text;
}

}  // namespace lockstep::launcher
