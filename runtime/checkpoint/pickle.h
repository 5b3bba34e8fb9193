// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::checkpoint {

/// A value of a pickle. Calls and persistent ids are kept as what they say; nothing is ever run.
struct PickleValue {
  enum class Kind : std::uint8_t {
    kNone,
    kBool,          ///< number: 0 or 1
    kInteger,       ///< number
    kReal,          ///< real
    kText,          ///< text
    kSequence,      ///< items: of a list, tuple or set
    kDictionary,    ///< items: key, value, key, value, ...
    kGlobal,        ///< text: "module name"
    kCall,          ///< items: what is called, a kGlobal, and its arguments, a kSequence
    kPersistentId,  ///< items: the id
  };
  Kind kind = Kind::kNone;
  std::int64_t number = 0;
  double real = 0;
  std::string text = {};
  std::vector<const PickleValue*> items = {};
};

/// A pickle of protocols 2 to 5, read as data (https://docs.python.org/3/library/pickletools.html). Only the opcodes
/// that torch.save writes for dictionaries, sequences, text, numbers and tensors are known.
class Pickle {
 public:
  /// Throws StorageError that names `path`, the offset and what is wrong: another opcode, a call of a global that is
  /// not in `globals`, the end of the bytes, more values than half of the bytes or than fit in memory. `globals`: the
  /// names that may be called or named, "collections OrderedDict".
  Pickle(std::string_view bytes, const std::string& path, const std::vector<std::string_view>& globals);

  const PickleValue& root() const { return *root_; }

 private:
  friend class PickleReader;
  // Values point to each other and are owned here: a value that holds itself, or a million nested ones, end as any
  // other.
  std::deque<PickleValue> values_;
  const PickleValue* root_ = nullptr;
};

}  // namespace lockstep::checkpoint
