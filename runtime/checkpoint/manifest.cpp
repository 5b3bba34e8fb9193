// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "runtime/tensor/error.h"

namespace lockstep::checkpoint {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 3;
constexpr const char* kFormat = "lockstep checkpoint";
constexpr std::string_view kChecksumField = ",\n  \"checksum\": \"";

/// The end of a manifest whose text before it is `body`.
std::string seal(std::string_view body) {
  return std::string(kChecksumField) + digest_of(std::as_bytes(std::span(body))).checksum + "\"\n}\n";
}

json to_json(const std::map<std::string, Digest>& digests) {
  json object = json::object();
  for (const auto& [name, digest] : digests) object[name] = {{"bytes", digest.bytes}, {"xxh3_128", digest.checksum}};
  return object;
}

std::map<std::string, Digest> to_digests(const json& object) {
  std::map<std::string, Digest> digests;
  for (const auto& [name, digest] : object.get_ref<const json::object_t&>()) {
    digests[name] = {digest.at("bytes").get_ref<const json::number_unsigned_t&>(),
                     digest.at("xxh3_128").get_ref<const std::string&>()};
  }
  return digests;
}

/// Refuses deep nesting while it is read, and keys given twice, of which a map would silently drop one.
json parse_strictly(std::string_view text, const std::string& path) {
  std::vector<std::set<std::string>> keys;
  return json::parse(text, [&](int depth, json::parse_event_t event, json& parsed) {
    const bool opens = event == json::parse_event_t::object_start || event == json::parse_event_t::array_start;
    if (opens && depth >= kMaxDepth) throw StorageError(path + " is nested too deeply");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event == json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw StorageError(path + " has the key " + parsed.dump() + " twice");
    }
    return true;
  });
}

}  // namespace

std::string format_manifest(const Manifest& manifest) {
  const nlohmann::ordered_json body = {{"format", kFormat},
                                       {"version", Manifest::kVersion},
                                       {"step", manifest.step},
                                       {"files", to_json(manifest.files)},
                                       {"tensors", to_json(manifest.tensors)}};
  std::string text = body.dump(2);
  text.resize(text.size() - 2);  // "\n}", which seal() puts behind the checksum
  return text + seal(text);
}

Manifest parse_manifest(std::string_view text, const std::string& path) {
  const std::size_t body = std::min(text.rfind(kChecksumField), text.size());
  if (text.substr(body) != seal(text.substr(0, body))) {
    throw StorageError(
        fmt::format("{} is damaged: its checksum does not match its text of {} bytes", path, text.size()));
  }
  try {
    const json document = parse_strictly(text, path);
    if (document.at("format") != kFormat) throw StorageError(path + " is not a checkpoint's manifest");
    if (document.at("version") != Manifest::kVersion) {
      throw StorageError(fmt::format("{} has format version {}; this program reads {}", path,
                                     document.at("version").dump(), Manifest::kVersion),
                         "Use the Lockstep version that wrote the checkpoint, or a newer one.");
    }
    return {document.at("step").get_ref<const json::number_unsigned_t&>(), to_digests(document.at("files")),
            to_digests(document.at("tensors"))};
  } catch (const json::exception& error) {
    throw StorageError(path + " is malformed: " + error.what());
  }
}

}  // namespace lockstep::checkpoint
