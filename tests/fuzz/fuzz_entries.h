// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "amp/grad_scaler/grad_scaler_state.h"
#include "comm/group/tcp/greeting.h"
#include "comm/group/tcp/meetings.h"
#include "runtime/base/error.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/pickle.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/torch_file.h"
#include "runtime/data/arrays.h"
#include "runtime/data/cifar.h"
#include "runtime/data/csv.h"
#include "runtime/data/formats/byte_pairs.h"
#include "runtime/data/formats/image.h"
#include "runtime/data/formats/nifti.h"
#include "runtime/data/formats/resample.h"
#include "runtime/data/idx.h"
#include "runtime/data/shards.h"
#include "runtime/data/tokens.h"
#include "runtime/job/differences.h"
#include "runtime/job/job.h"
#include "runtime/step/state_fields.h"
#include "runtime/train/record/earlier_metrics.h"
#include "runtime/train/record/run_end.h"
#include "runtime/train/record/summary.h"
#include "runtime/train/record/tensorboard.h"
#include "runtime/train/record/tf_record.h"
#include "tests/support/zip_archive.h"

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

/// As a whole file, as the pickle in one, since behind a checksum nothing else reaches that, and as a pickle alone.
inline void fuzz_torch(std::string_view bytes) {
  const std::string archive = zip_archive({{"w/data.pkl", std::string(bytes)}, {"w/data/0", std::string(64, '\1')}});
  for (const std::string_view file : {bytes, std::string_view(archive)}) {
    with_file(file, [](const std::string& path) { checkpoint::read_torch_file(path); });
  }
  try {
    const checkpoint::Pickle pickle(
        bytes, "data.pkl", {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch FloatStorage"});
  } catch (const StorageError&) {
  }
}

/// The bytes are both files: labels differ from images in a byte of the header alone.
inline void fuzz_idx(std::string_view bytes) {
  with_file(bytes, [](const std::string& path) { data::count_idx_classes(path); });
  with_file(bytes, [](const std::string& path) { data::IdxKind::open({path, path, 10}); });
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
    data::read_nifti(path, header, {0, header.shape[0]}, values);
  });
}

/// A tar file whose headers' checksums fit.
inline std::string with_tar_checksums(std::string_view bytes) {
  std::string text(bytes);
  for (std::size_t at = 0; at + 512 <= text.size(); at += 512) {
    if (text.compare(at + 257, 5, "ustar") != 0) continue;
    text.replace(at + 148, 8, 8, ' ');
    unsigned sum = 0;
    for (std::size_t i = at; i < at + 512; ++i) sum += static_cast<unsigned char>(text[i]);
    for (std::size_t digit = at + 154; digit > at + 148; sum /= 8) text[--digit] = static_cast<char>('0' + sum % 8);
    text[at + 154] = '\0';
  }
  return text;
}

/// Both as they come and with checksums that fit, since without one nothing behind a header's is reached. The last
/// sample is drawn, too.
inline void fuzz_shards(std::string_view bytes) {
  const std::string mended = with_tar_checksums(bytes);
  for (const std::string_view file : {bytes, std::string_view(mended)}) {
    with_file(file, [](const std::string& path) {
      const data::ShardsDataset set({.files = {path}, .size = 8, .max_pixels = 1 << 16});
      std::vector<float> values(8 * 8 * 3);
      std::int64_t label = 0;
      set.get({.index = set.size() - 1}, {.values = values, .labels = std::span(&label, 1)});
    });
  }
}

/// As each kind of records, opened and described.
inline void fuzz_cifar(std::string_view bytes) {
  for (const data::CifarLabels labels :
       {data::CifarLabels::kCifar10, data::CifarLabels::kCifar100Coarse, data::CifarLabels::kCifar100Fine}) {
    with_file(bytes, [labels](const std::string& path) { data::CifarKind::describe({{path}, labels}); });
    with_file(bytes, [labels](const std::string& path) {
      const data::DatasetPtr set = data::CifarKind::open({{path}, labels});
      std::vector<float> values(32 * 32 * 3);
      std::int64_t label = 0;
      set->get({.index = set->size() - 1}, {.values = values, .labels = std::span(&label, 1)});
    });
  }
}

/// As a file of TensorBoard's, and as an event in one, behind checksums that fit. What stays stays again.
inline void fuzz_events(std::string_view bytes) {
  const std::string record = tf_record(bytes);
  for (const std::string_view file : {bytes, std::string_view(record)}) {
    const std::string kept = events_up_to(file, 7);
    if (events_up_to(kept, 7) != kept) std::abort();
  }
}

/// A directory in memory that lasts as long as the process.
class RunRecord {
 public:
  RunRecord() {
    const bool shared_memory = ::access("/dev/shm", W_OK) == 0;
    std::string pattern =
        (shared_memory ? "/dev/shm" : std::filesystem::temp_directory_path().string()) + "/lockstep-fuzz-XXXXXX";
    if (::mkdtemp(pattern.data()) != nullptr) directory_ = pattern;
  }
  ~RunRecord() { std::filesystem::remove_all(directory_); }
  void write(const char* name, std::string_view bytes) const {
    std::ofstream(directory_ / name, std::ios::binary) << bytes;
  }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
};

/// The bytes are metrics.jsonl and summary.json of a run that goes on, and of one that ends.
inline void fuzz_run_record(std::string_view bytes) {
  static const RunRecord run;
  const std::string kept = train::lines_up_to(bytes, 7).text;
  if (train::lines_up_to(kept, 7).text != kept) std::abort();
  with_file(bytes, [](const std::string& path) { train::describes(path, 7, "ab"); });
  const std::chrono::system_clock::time_point since{};
  const train::RunEnd end{.status = train::RunEnd::Status::kFailed, .code = ExitCode::kPeerLost, .step = 7};
  run.write("metrics.jsonl", bytes);
  run.write("summary.json", bytes);
  train::record_event_of_end(run.directory(), since, false);
  train::record_end(run.directory(), end, since);
}

/// As a job, and as the value of an override; neither may throw whatever it says.
inline void fuzz_job(std::string_view bytes) {
  job::check_text(bytes, "job.pbtxt", {}, ".");
  const std::string override_text = "model=" + std::string(bytes);
  job::check_text("name: 'x'", "job.pbtxt", {&override_text, 1}, ".");
}

/// What somebody says to the hub as his greeting: it can be printed, and proves nothing without the key.
inline void fuzz_greeting(std::string_view bytes) {
  comm::Hello hello;
  std::memcpy(&hello, bytes.data(), std::min(bytes.size(), sizeof hello));
  const comm::RunKey key = comm::sha256({});
  const comm::Digest256 proof = comm::proof_of(hello, comm::Greeting(), key);
  if (comm::are_equal(hello.proof, proof)) std::abort();
  hello.proof = proof;
  if (!comm::are_equal(comm::proof_of(hello, comm::Greeting(), key), proof)) std::abort();
  const std::string shown = comm::rank_name(hello, comm::Hello()) + hello.job.str() + hello.job_hash.str();
  if (shown.find('\x1b') != std::string::npos) std::abort();
}

/// What rank 1 sends the hub, where rank 0 goes along with all of it.
inline void fuzz_tcp(std::string_view bytes) {
  fuzz_greeting(bytes);
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
