// SPDX-License-Identifier: Apache-2.0
#include "launcher/examination_text.h"

#include <algorithm>
#include <cstdio>

namespace lockstep::launcher {

using Json = nlohmann::ordered_json;

namespace {

std::string str(const Json& value) {
  if (value.is_null()) return "none";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string line(std::string name, const std::string& value) {
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
  return str(device["name"]) + ", compute capability " + str(device["compute_capability"]) + ", tensor cores for " +
         (device["float16"].is_null()    ? "none"
          : device["bfloat16"].is_null() ? "float16, no bfloat16"
                                         : "float16 and bfloat16") +
         ", " + gibibytes(device["free_bytes"]) + " of " + gibibytes(device["memory_bytes"]) + " free";
}

std::string joined(const Json& names) {
  std::string text;
  for (const Json& name : names) text += (text.empty() ? "" : ", ") + str(name);
  return text.empty() ? "none" : text;
}

}  // namespace

std::string examination_text(const Json& examination) {
  const Json& processor = examination["processor"];
  const Json& memory = examination["shared_memory"];
  std::string text =
      line("lockstep", str(examination["lockstep"])) + line("trains on", joined(examination["trains_on"]));
  text += line("processor", str(processor["cores"]) + " cores, " + str(processor["isa"]) +
                                ", 16-bit instructions: " + joined(processor["half_instructions"]));
  for (const char* dtype : {"float16", "bfloat16"}) text += line(dtype, str(processor[dtype]));
  for (const Json& device : examination["devices"]) text += line(str(device["device"]), device_text(device));
  text += line("CUDA driver", str(examination["cuda_driver"]));
  for (const auto& [name, version] : examination["libraries"].items()) text += line(name, str(version));
  text += line("mpirun", str(examination["mpirun"]));
  text += line(str(memory["path"]), gibibytes(memory["free_bytes"]) + " of " + gibibytes(memory["bytes"]) + " free");
  for (const Json& finding : examination["findings"]) {
    text += "\nmissing: " + str(finding["missing"]) + "\n  " + str(finding["consequence"]) + "\n  → " +
            str(finding["advice"]) + "\n";
  }
  return text;
}

}  // namespace lockstep::launcher
