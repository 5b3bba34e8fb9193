// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/bundle.h"

#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <vector>

#include "runtime/base/error.h"
#include "runtime/base/files/durable_file.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/temporary_directory.h"

namespace lockstep::checkpoint {

namespace fs = std::filesystem;

namespace {

constexpr const char* kDescriptionFile = "description.json";
constexpr std::size_t kCopiedBytes = std::size_t{1} << 20;

struct FreeWriter {
  void operator()(archive* writer) const { archive_write_free(writer); }
};
struct FreeEntry {
  void operator()(archive_entry* entry) const { archive_entry_free(entry); }
};

/// What libarchive writes to. An exception does not pass through it.
struct Sink {
  OutputFile& file;
  std::exception_ptr failure = nullptr;

  void require(archive* writer, la_ssize_t result) const {
    if (result >= ARCHIVE_OK) return;
    if (failure) std::rethrow_exception(failure);
    const char* const reason = archive_error_string(writer);
    throw StorageError("cannot write " + file.path() + ": " + (reason == nullptr ? "libarchive fails" : reason));
  }
};

la_ssize_t write_bytes(archive*, void* to, const void* bytes, std::size_t count) {
  auto& sink = *static_cast<Sink*>(to);
  try {
    sink.file.write({static_cast<const std::byte*>(bytes), count});
    return static_cast<la_ssize_t>(count);
  } catch (const StorageError&) {
    sink.failure = std::current_exception();
    return -1;
  }
}

/// Packs files of a folder, in this order.
void pack(const std::string& folder, const std::vector<std::string>& names, OutputFile& out) {
  const std::unique_ptr<archive, FreeWriter> writer(archive_write_new());
  archive_write_set_format_pax_restricted(writer.get());
  archive_write_set_bytes_in_last_block(writer.get(), 1);
  Sink sink{out};
  sink.require(writer.get(), archive_write_open(writer.get(), &sink, nullptr, write_bytes, nullptr));
  std::vector<std::byte> buffer(kCopiedBytes);
  for (const std::string& name : names) {
    const InputFile file(folder + "/" + name);
    // No time, owner or mode of this machine.
    const std::unique_ptr<archive_entry, FreeEntry> entry(archive_entry_new());
    archive_entry_set_pathname(entry.get(), name.c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(file.size()));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    archive_entry_set_mtime(entry.get(), 0, 0);
    sink.require(writer.get(), archive_write_header(writer.get(), entry.get()));
    for (std::uint64_t at = 0; at < file.size();) {
      const std::span<std::byte> part =
          std::span(buffer).first(static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), file.size() - at)));
      file.read(at, part);
      sink.require(writer.get(), archive_write_data(writer.get(), part.data(), part.size()));
      at += part.size();
    }
  }
  sink.require(writer.get(), archive_write_close(writer.get()));
}

}  // namespace

bool is_bundle(const fs::path& path) { return path.extension() == ".lockstep"; }

void write_bundle(const fs::path& path, const TrainingState& state, const std::map<std::string, Tensor>& tensors,
                  const std::string& description) {
  if (!is_bundle(path)) throw UsageError(path.string() + ": the name of a bundle must end in .lockstep");
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  make_directories(parent);
  const TemporaryDirectory beside(parent, path.filename().string());
  write_checkpoint(beside.path(), state, tensors);
  OutputFile text(beside.path() + "/" + kDescriptionFile);
  text.write(std::as_bytes(std::span(description)));
  text.sync_and_close();
  OutputFile packed(beside.path() + "/packed");
  pack(beside.path(), {kDescriptionFile, kManifestFile, kStateFile, kTensorFile}, packed);
  packed.sync_and_close();
  std::error_code error;
  fs::rename(packed.path(), path, error);
  if (error) throw StorageError("cannot write " + path.string() + ": " + error.message());
  sync_directory(parent);
}

}  // namespace lockstep::checkpoint
