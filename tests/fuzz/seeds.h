// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "comm/group/tcp/frame.h"
#include "comm/group/tcp/greeting.h"
#include "configs/checkpoint.pb.h"
#include "runtime/checkpoint/manifest.h"
#include "tests/support/zip_archive.h"

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

/// An array of three bytes, which is features and targets at once.
inline std::vector<std::string> npy_seeds() {
  const std::string text = "{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n";
  return {std::string("\x93NUMPY\1\0", 8) + static_cast<char>(text.size()) + '\0' + text + "\1\2\1"};
}

inline std::vector<std::string> csv_seeds() {
  return {"length,\"a \"\"kind\"\"\"\r\n1.5,cat\r\n-2e3,\"d,og\"\r\n", "1,2,3\n4,5,6\n"};
}

/// Numbers of two bytes, and such behind llm.c's header.
inline std::vector<std::string> tokens_seeds() {
  const std::string tokens("\1\0\2\0\3\0\4\0\5\0\6\0", 12);
  std::string header("\x88\xd8\x34\x01\1\0\0\0\6\0\0\0", 12);
  header.resize(1024);
  return {tokens, header + tokens};
}

/// A token for each byte and two that merges make.
inline std::vector<std::string> byte_pairs_seeds() {
  std::string vocab = "{";
  int number = 0;
  const auto add = [&](unsigned code) {
    std::string name(1, static_cast<char>(code));
    if (code == '"' || code == '\\') name = "\\" + name;
    if (code >= 0x80) name = {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
    vocab += "\"" + name + "\":" + std::to_string(number++) + ",";
  };
  for (unsigned code = 0x21; code < 0x100; ++code) {
    if (code <= 0x7e || (code >= 0xa1 && code != 0xad)) add(code);
  }
  for (unsigned code = 0x100; code < 0x100 + 68; ++code) add(code);
  return {"a b|ab c\n" + vocab + "\"ab\":256,\"abc\":257}"};
}

/// A JPEG and a PNG of 8 x 8 pixels, in hexadecimal digits.
inline const std::string kJpeg =
    "ffd8ffe000104a46494600010100000100010000ffdb0043000d090a0b0a080d0b0a0b0e0e0d0f13201513121213271c1e17202e2931302e"
    "292d2c333a4a3e333646372c2d405741464c4e525352323e5a615a50604a51524fffdb0043010e0e0e131113261515264f352d354f4f4f4f"
    "4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4f4fffc00011080008000803"
    "012200021101031101ffc4001500010100000000000000000000000000000004ffc400191001000203000000000000000000000000000506"
    "2231a1ffc4001501010100000000000000000000000000000305ffc4001c1100010305000000000000000000000000030001040512132131"
    "ffda000c03010002110311003f008236bfac380269a516eea5a6cd3606daffd9";
inline const std::string kPng =
    "89504e470d0a1a0a0000000d49484452000000080000000808020000004b6d29dc000000194944415478da63646088926360c0442c0c720c"
    "58c1e09400003b9b021caa4390bb0000000049454e44ae426082";

inline std::vector<std::string> image_seeds() {
  const auto bytes_of = [](const std::string& digits) {
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2)
      bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    return bytes;
  };
  return {bytes_of(kJpeg), bytes_of(kPng)};
}

/// A volume of 2 x 1 x 1 numbers of two bytes.
inline std::vector<std::string> nifti_seeds() {
  std::string bytes(352, '\0');
  bytes.replace(0, 2, "\x5c\x01");
  bytes.replace(40, 8, std::string("\3\0\2\0\1\0\1\0", 8));
  bytes.replace(70, 3, std::string("\4\0\x10", 3));
  bytes.replace(108, 12, std::string("\0\0\xb0\x43\0\0\0\x40\0\0\x80\x3f", 12));
  bytes.replace(344, 3, "n+1");
  return {bytes + std::string("\1\0\2\0", 4)};
}

/// An image and its label, behind pax records.
inline std::vector<std::string> shards_seeds() {
  const auto member = [](const std::string& name, const std::string& content, char type) {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    std::string size(11, '0');
    for (std::size_t rest = content.size(), at = size.size(); rest > 0; rest /= 8)
      size[--at] += static_cast<char>(rest % 8);
    header.replace(124, size.size(), size);
    header[156] = type;
    header.replace(257, 5, "ustar");
    header.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    for (std::size_t at = 154; at > 148; sum /= 8) header[--at] = static_cast<char>('0' + sum % 8);
    header[154] = '\0';
    std::string whole = header + content;
    whole.resize((whole.size() + 511) / 512 * 512);
    return whole;
  };
  return {member("x", "14 path=a.jpg\n", 'x') + member("b.jpg", image_seeds()[0], '0') + member("a.cls", "3", '0') +
          std::string(1024, '\0')};
}

/// As this project and as PyTorch writes them.
inline std::vector<std::string> scaler_seeds() {
  const std::string state = R"({"scale":65536.0,"growth_factor":2.0,"backoff_factor":0.5,"growth_interval":2000,)";
  return {state + R"("_growth_tracker":3,"consecutive_skips":1,"skipped_steps":4})", state + R"("_growth_tracker":0})",
          "{}"};
}

/// A state as runs save it, and one of another version.
inline std::vector<std::string> state_seeds() {
  checkpoint::TrainingState state;
  state.set_step(7);
  state.set_format(1);
  state.mutable_sampler()->set_epoch(1);
  state.mutable_sampler()->set_cursor(96);
  state.add_optimizer("sgd");
  state.add_schedule()->set_applied_steps(6);
  checkpoint::ScalerState& scaler = *state.add_scaler();
  scaler.set_enabled(true);
  scaler.set_scale(65536);
  state.add_bucket_plan()->add_parameter("head.weight");
  state.mutable_job()->set_name("digits");
  state.mutable_job()->mutable_data()->set_global_batch(64);
  state.add_weights_digest("0123456789abcdef");
  const std::string unknown = "\xf2\x3f\x03new";  // field 1022
  return {state.SerializeAsString(), state.SerializeAsString() + unknown, unknown};
}

/// The pickle that torch.save writes of one tensor, within an archive "data.pkl".
inline std::vector<std::string> pickle_seeds() {
  const auto text = [](const std::string& value) {
    return 'X' + std::string(1, static_cast<char>(value.size())) + std::string(3, '\0') + value;
  };
  const std::string storage = "((" + text("storage") + "ctorch\nFloatStorage\n" + text("0") + text("cpu") + "K\1tQ";
  const std::string tensor = "ctorch._utils\n_rebuild_tensor_v2\n" + storage + "K" + std::string(1, '\0') +
                             "K\1K\1\x86K\1K\1\x86\x89"
                             "ccollections\nOrderedDict\n)RtR";
  return {"\x80\2}(" + text("weight") + tensor + "u}" + text("_metadata") + "Nsb."};
}

/// Whole archives: a tensor of one number.
inline std::vector<std::string> torch_seeds() {
  return {zip_archive({{"w/data.pkl", pickle_seeds()[0]}, {"w/byteorder", "little"}, {"w/data/0", "\1\2\3\4"}})};
}

/// An image of CIFAR-10 and one of CIFAR-100.
inline std::vector<std::string> cifar_seeds() {
  const std::string image(3 * 32 * 32, '\x55');
  return {"\7" + image, "\3\x0c" + image};
}

/// Events of TensorBoard, each a record's payload: a version, and a point of step 300.
inline std::vector<std::string> events_seeds() {
  const std::string time = "\x09" + std::string(8, '\x40');
  return {time + "\x1a\x0d" + "brain.Event:2",
          time + "\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04" + "loss\x15" + std::string("\0\0\0\x3f", 4)};
}

/// Lines of metrics.jsonl, and a summary.json.
inline std::vector<std::string> run_record_seeds() {
  return {R"({"step":1,"loss":0.5,"time":1.5})"
          "\n"
          R"({"event":"eval","step":1,"time":2,"loss":0.25})"
          "\n"
          R"({"event":"failed","step":9,"time":3,"exit_code":4,"detail":"x","where":"rank 1"})"
          "\n",
          R"({"status":"done","exit_code":0,"error":null,"step":7,"restarts":0,"steps":7,"weights_digest":"ab"})",
          R"({"status":"failed","exit_code":7,"error":{"message":"a","advice":"b","where":"c"},"step":7})"};
}

/// A frame of each kind of operation, and a greeting.
inline std::vector<std::string> tcp_seeds() {
  using comm::OperationKind;
  std::string frames;
  for (const OperationKind kind : {OperationKind::kAllReduce, OperationKind::kReduceScatter, OperationKind::kBroadcast,
                                   OperationKind::kAllGather, OperationKind::kNewChannel, OperationKind::kLeave}) {
    const comm::FrameHeader header{.operation = {.kind = kind, .dtype = DType::kFloat32, .count = 2}, .bytes = 8};
    frames += std::string(reinterpret_cast<const char*>(&header), sizeof header) + "12345678";
  }
  comm::Hello hello;
  hello.job = comm::ShortText::of("digits");
  return {frames, std::string(reinterpret_cast<const char*>(&hello), sizeof hello)};
}

}  // namespace lockstep::fuzz
