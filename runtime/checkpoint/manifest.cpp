// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/manifest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "runtime/base/error.h"

namespace lockstep::checkpoint {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 3;
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

/// Refuses deep nesting before it is built, and keys given twice, of which a map would silently drop one. Syntax errors
/// are left to json::parse(). (Its own callback looks at all members of an object after each of them.)
class Strictness : public nlohmann::json_sax<json> {
 public:
  explicit Strictness(const std::string& path) : path_(path) {}

  bool start_object(std::size_t) override { return keys_.emplace_back(), shallow(); }
  bool start_array(std::size_t) override { return keys_.emplace_back(), shallow(); }
  bool end_object() override { return keys_.pop_back(), true; }
  bool end_array() override { return keys_.pop_back(), true; }
  bool key(std::string& name) override {
    if (keys_.back().insert(name).second) return true;
    throw StorageError(path_ + " has the key " + json(name).dump() + " twice");
  }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(json::binary_t&) override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  bool shallow() const {
    if (keys_.size() <= kMaxDepth) return true;
    throw StorageError(path_ + " is nested too deeply");
  }

  const std::string& path_;
  std::vector<std::set<std::string>> keys_;  // of the objects and arrays around
};

json parse_strictly(std::string_view text, const std::string& path) {
  Strictness strictness(path);
  json::sax_parse(text, &strictness);
  return json::parse(text);
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
      throw FormatVersionError(fmt::format("{} has format version {}; this program reads {}", path,
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
