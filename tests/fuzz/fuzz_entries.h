// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "amp/grad_scaler/grad_scaler_state.h"
#include "comm/group/tcp/meetings.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/pickle.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/torch_file.h"
#include "runtime/data/arrays.h"
#include "runtime/data/byte_pairs.h"
#include "runtime/data/csv.h"
#include "runtime/data/idx.h"
#include "runtime/data/image.h"
#include "runtime/data/nifti.h"
#include "runtime/data/resample.h"
#include "runtime/data/shards.h"
#include "runtime/data/tokens.h"
#include "runtime/job/differences.h"
#include "runtime/job/job.h"
#include "runtime/step/state_fields.h"
#include "runtime/tensor/error.h"

// What a fuzzer calls with any bytes: each parser may refuse them with a StorageError, that of
// a GradScaler's state with a UsageError, and do nothing else but succeed.

namespace lockstep::fuzz {

/// Hands `parse` a file of these bytes that never touches a disk.
template <class Parse>
void with_file(std::string_view bytes, Parse&& parse) {
  const int descriptor = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (::write(descriptor, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
    try {
      parse("/proc/self/fd/" + std::to_string(descriptor));
    } catch (const StorageError&) {
    }
  }
  ::close(descriptor);
}

inline void fuzz_safetensors(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) {
    const checkpoint::SafetensorsFile file(path);
    for (const checkpoint::TensorEntry& entry : file.tensors()) file.read(entry);
  });
}

/// As a whole file, and as the pickle in one, since without a valid archive nothing reaches that.
inline void fuzz_torch(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) { checkpoint::read_torch_file(path); });
  try {
    const checkpoint::Pickle pickle(
        bytes, "data.pkl", {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch FloatStorage"});
  } catch (const StorageError&) {
  }
}

/// The bytes are both files: labels differ from images in a byte of the header alone.
inline void fuzz_idx(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) { data::count_idx_classes(path); });
  with_file(bytes, [](const std::string& path) { data::open_idx({path, path, 10}); });
}

/// The bytes are features and targets.
inline void fuzz_npy(std::string_view bytes) {
  for (const data::TargetKind kind : {data::TargetKind::kClasses, data::TargetKind::kNumbers}) {
    with_file(bytes, [kind](const std::string& path) {
      const data::ArraysDataset set({path, path, kind});
      std::vector<float> values(static_cast<std::size_t>(set.sample_shape().numel()));
      const auto targets = static_cast<std::size_t>(set.target_shape().numel());
      std::vector<float> target(set.classes() > 0 ? 0 : targets);
      std::vector<std::int64_t> labels(set.classes() > 0 ? targets : 0);
      set.get({.index = set.size() - 1}, {.values = values, .target = target, .labels = labels});
    });
  }
}

inline void fuzz_csv(std::string_view bytes) {
  for (const bool header : {true, false}) {
    with_file(bytes, [header](const std::string& path) {
      data::CsvDataset({.files = {path}, .header = header});
      data::CsvDataset({.files = {path}, .header = header, .target_kind = data::TargetKind::kNumbers});
    });
  }
}

/// As a file of each format, and as vocabulary and merges.
inline void fuzz_tokens(std::string_view bytes) {
  for (const data::TokenFormat format :
       {data::TokenFormat::kBytes, data::TokenFormat::kUint16, data::TokenFormat::kLlmC}) {
    with_file(bytes, [format](const std::string& path) {
      const data::TokensDataset set({.files = {path}, .format = format, .context = 4});
      std::vector<std::int64_t> tokens(4);
      std::vector<std::int64_t> labels(4);
      set.get({.index = set.size() - 1}, {.tokens = tokens, .labels = labels});
    });
  }
}

/// The first line is merges.txt, where '|' ends a line; the rest is vocab.json, and the text.
inline void fuzz_byte_pairs(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  std::string merges(bytes.substr(0, end));
  std::ranges::replace(merges, '|', '\n');
  const std::string rest(bytes.substr(end));
  with_file(rest, [&](const std::string& vocab) {
    with_file(merges, [&](const std::string& path) { data::BytePairs(vocab, path).encode(rest); });
  });
}

/// What is decoded is scaled, too.
inline void fuzz_image(std::string_view bytes) {
  const auto choose = [](std::int64_t width, std::int64_t height) {
    return data::ImageView{0, 0, static_cast<double>(width), static_cast<double>(height), {0, 0, width, height}, 8};
  };
  try {
    std::vector<float> out(8 * 8 * 3);
    data::resample(data::decode_image(std::as_bytes(std::span(bytes)), 1 << 16, choose, "image"), out);
  } catch (const StorageError&) {
  }
}

/// What is taken of the volume is as large as its header says, which is bounded.
inline void fuzz_nifti(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) {
    const data::NiftiHeader header = data::read_nifti_header(path, 1 << 16);
    std::vector<float> values(static_cast<std::size_t>(header.shape.numel()));
    data::read_nifti(path, header, values);
  });
}

/// The last sample is drawn, too.
inline void fuzz_shards(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) {
    const data::ShardsDataset set({.files = {path}, .size = 8, .max_pixels = 1 << 16});
    std::vector<float> values(8 * 8 * 3);
    std::int64_t label = 0;
    set.get({.index = set.size() - 1}, {.values = values, .labels = std::span(&label, 1)});
  });
}

/// As a job, and as the value of an override; neither may throw whatever it says.
inline void fuzz_job(std::string_view bytes) {
  job::check_text(bytes, "job.pbtxt", {}, ".");
  const std::string override_text = "model=" + std::string(bytes);
  job::check_text("name: 'x'", "job.pbtxt", {&override_text, 1}, ".");
}

/// What rank 1 sends the hub, where rank 0 goes along with all of it.
inline void fuzz_tcp(std::string_view bytes) {
  const auto [hub, rank] = comm::connected_pair();
  rank.send(bytes.data(), bytes.size());
  rank.end_sending();
  comm::TcpMeetings meetings(2, std::chrono::seconds(1), [](int, const comm::FrameHeader&, const comm::Payload&) {});
  comm::FrameReader reader;
  while (const std::optional<comm::Frame> frame = reader.next(hub)) {
    if (frame->header.kind > comm::FrameKind::kFailed) break;
    meetings.take(0, {{.kind = frame->header.kind, .operation = frame->header.operation}, frame->payload});
    meetings.take(1, *frame);
    comm::decode_error(frame->payload);
  }
}

/// Both as they come and behind a checksum that fits, since without one nearly nothing reaches the JSON parser.
inline void fuzz_manifest(std::string_view bytes) {
  const std::string sealed = std::string(bytes) + ",\n  \"checksum\": \"" +
                             checkpoint::digest_of(std::as_bytes(std::span(bytes))).checksum + "\"\n}\n";
  for (const std::string_view text : {bytes, std::string_view(sealed)}) {
    try {
      checkpoint::parse_manifest(text, "manifest.json");
    } catch (const StorageError&) {
    }
  }
}

/// The state of a GradScaler; what is taken is written and read again as the same.
inline void fuzz_scaler(std::string_view bytes) {
  try {
    const amp::GradScalerState state = amp::grad_scaler_state_from_json(bytes);
    if (amp::grad_scaler_state_from_json(amp::to_json(state)) != state) std::abort();
  } catch (const UsageError&) {
  }
}

/// A state file, and what is asked of it before a run resumes.
inline void fuzz_state(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // it prints what it refuses
  try {
    checkpoint::Checkpoint saved;
    saved.state = checkpoint::parse_state(bytes, "state.pb");
    step::unknown_fields(saved.state);
    job::differences(saved.state.job(), job::Job());
    step::require_complete(saved);
  } catch (const StorageError&) {
  }
}

}  // namespace lockstep::fuzz
