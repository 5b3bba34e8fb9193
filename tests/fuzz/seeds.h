// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/group/tcp/frame.h"
#include "runtime/checkpoint/manifest.h"

// Valid inputs of the parsers, from which a fuzzer starts. A job's seeds are the ready jobs in configs/.

namespace lockstep::fuzz {

inline const std::string kSafetensorsHeader =
    R"({"__metadata__":{"k":"v"},"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
    R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]}})";
inline const std::string kSafetensorsData(9, '\1');

/// The header behind its length in 8 bytes, and the tensors' bytes.
inline std::string safetensors_file(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(header.size() >> shift & 0xff);
  return bytes + header + data;
}

inline std::vector<std::string> safetensors_seeds() { return {safetensors_file(kSafetensorsHeader, kSafetensorsData)}; }

/// Manifests without their last field, the checksum.
inline std::vector<std::string> manifest_seeds() {
  const std::string text = checkpoint::format_manifest({7, {{"state.pb", {3, "ab"}}}, {{"w", {4, "cd"}}}});
  return {text.substr(0, text.rfind(",\n  \"checksum\""))};
}

/// Two images of 2 x 2 pixels, and two labels.
inline std::vector<std::string> idx_seeds() {
  return {std::string("\0\0\x08\x03", 4) + std::string("\0\0\0\2\0\0\0\2\0\0\0\2", 12) + "abcdefgh",
          std::string("\0\0\x08\x01", 4) + std::string("\0\0\0\2", 4) + "\1\2"};
}

/// As this project and as PyTorch writes them.
inline std::vector<std::string> scaler_seeds() {
  const std::string state = R"({"scale":65536.0,"growth_factor":2.0,"backoff_factor":0.5,"growth_interval":2000,)";
  return {state + R"("_growth_tracker":3,"consecutive_skips":1,"skipped_steps":4})", state + R"("_growth_tracker":0})",
          "{}"};
}

/// The pickle that torch.save writes of one tensor, within an archive "data.pkl".
inline std::vector<std::string> torch_seeds() {
  const auto text = [](const std::string& value) {
    return 'X' + std::string(1, static_cast<char>(value.size())) + std::string(3, '\0') + value;
  };
  const std::string storage = "((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\1tQ";
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n" + storage + "K" + std::string(1, '\0') +
                             "K\1K\1\x86K\1K\1\x86\x89"
                             "ccollections\nOrderedDict\n)RtR";
  return {"\x80\2}(" + text("weight") + tensor + "u}" + text("_metadata") + "Nsb."};
}

/// A frame of each kind of operation.
inline std::vector<std::string> tcp_seeds() {
  using comm::OperationKind;
  std::string frames;
  for (const OperationKind kind : {OperationKind::kAllReduce, OperationKind::kReduceScatter, OperationKind::kBroadcast,
                                   OperationKind::kAllGather, OperationKind::kNewChannel, OperationKind::kLeave}) {
    const comm::FrameHeader header{.operation = {.kind = kind, .dtype = DType::kFloat32, .count = 2}, .bytes = 8};
    frames += std::string(reinterpret_cast<const char*>(&header), sizeof header) + "12345678";
  }
  return {frames};
}

}  // namespace lockstep::fuzz
