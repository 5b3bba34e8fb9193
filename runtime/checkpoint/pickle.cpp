// SPDX-License-Identifier: Apache-2.0
#include "runtime/checkpoint/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "runtime/base/error.h"
#include "runtime/tensor/memory_budget.h"

namespace lockstep::checkpoint {

/// The machine that a pickle is a program of: a stack of values, and a memo.
class PickleReader {
 public:
  PickleReader(Pickle& pickle, std::string_view bytes, const std::string& path,
               const std::vector<std::string_view>& globals)
      : pickle_(pickle), bytes_(bytes), path_(path), globals_(globals) {}

  const PickleValue* run() {
    while (true) {
      opcode_at_ = at_;
      const char opcode = take(1)[0];
      if (opcode == '.') return pop();
      step(opcode);
    }
  }

 private:
  using Kind = PickleValue::Kind;
  using Values = std::vector<PickleValue*>;
  static constexpr std::size_t kFewValues = 1024;

  [[noreturn]] void fail(const std::string& what) const {
    throw StorageError(fmt::format("{}: {} at byte {} of its pickle", path_, what, opcode_at_),
                       "Only tensors are read, as torch.save(model.state_dict()) writes them.");
  }

  std::string_view take(std::size_t count) {
    if (count > bytes_.size() - at_) fail("the data end");
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  std::uint64_t little_endian(std::size_t count) {
    std::uint64_t value = 0;
    const std::string_view bytes = take(count);
    for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }

  std::string_view line() {
    const std::size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) fail("a line without an end");
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }

  PickleValue* make(PickleValue value) {
    // Each takes memory however short its opcode is. A tensor's twenty values take some 250 bytes.
    if (pickle_.values_.size() > kFewValues + bytes_.size() / 2) fail("too many values");
    budget_.take(sizeof(PickleValue), path_);
    pickle_.values_.push_back(std::move(value));
    return &pickle_.values_.back();
  }

  void push(PickleValue value) { stack_.push_back(make(std::move(value))); }

  PickleValue* pop() {
    if (stack_.empty() || (!marks_.empty() && stack_.size() <= marks_.back())) fail("a value is missing");
    PickleValue* const value = stack_.back();
    stack_.pop_back();
    return value;
  }

  PickleValue* top(Kind kind) {
    PickleValue* const value = pop();
    stack_.push_back(value);
    if (value->kind != kind) fail("a value of another kind");
    return value;
  }

  /// The values above the last mark.
  Values pop_marked() {
    if (marks_.empty()) fail("a mark is missing");
    const auto begin = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    Values values(begin, stack_.end());
    stack_.erase(begin, stack_.end());
    marks_.pop_back();
    return values;
  }

  void push_sequence(const Values& values) { push({.kind = Kind::kSequence, .items = {values.begin(), values.end()}}); }

  void push_last(std::size_t count) {
    Values values(count);
    for (std::size_t i = count; i-- > 0;) values[i] = pop();
    push_sequence(values);
  }

  void put_into(Kind kind, const Values& values) {
    PickleValue* const container = top(kind);
    if (kind == Kind::kDictionary && values.size() % 2 != 0) fail("a key without a value");
    container->items.insert(container->items.end(), values.begin(), values.end());
  }

  void push_global(std::string name) {
    if (std::ranges::find(globals_, name) == globals_.end())
      fail(fmt::format("'{}', which is no tensor's part,", name));
    push({.kind = Kind::kGlobal, .text = std::move(name)});
  }

  void push_call() {
    const PickleValue* const arguments = pop();
    const PickleValue* const called = pop();
    if (called->kind != Kind::kGlobal || arguments->kind != Kind::kSequence) fail("a call of what is no function");
    // An empty OrderedDict, which SETITEMS fills.
    if (called->text == "collections OrderedDict") return push({.kind = Kind::kDictionary});
    push({.kind = Kind::kCall, .items = {called, arguments}});
  }

  void remember(std::uint64_t key) {
    PickleValue* const value = pop();
    stack_.push_back(value);
    memo_[key] = value;
  }

  void recall(std::uint64_t key) {
    const auto found = memo_.find(key);
    if (found == memo_.end()) fail("a reference to nothing");
    stack_.push_back(found->second);
  }

  void push_integer(std::uint64_t value) { push({.kind = Kind::kInteger, .number = static_cast<std::int64_t>(value)}); }

  /// Little-endian, two's complement.
  void push_long(std::size_t count) {
    if (count > 8) fail("a number of more than 64 bits");
    const std::uint64_t value = little_endian(count);
    const std::size_t unused = 64 - 8 * count;
    push_integer(count == 0 ? 0 : static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused));
  }

  void push_text(std::size_t count) { push({.kind = Kind::kText, .text = std::string(take(count))}); }

  void step(char opcode) {
    switch (opcode) {
      case '\x80':  // PROTO
        if (const std::uint64_t protocol = little_endian(1); protocol > 5) fail("an unknown protocol");
        return;
      case '\x95':  // FRAME
        take(8);
        return;
      case '(':  // MARK
        return marks_.push_back(stack_.size());
      case '0':  // POP
        pop();
        return;
      case 'N':
        return push({});
      case '\x88':  // NEWTRUE
        return push({.kind = Kind::kBool, .number = 1});
      case '\x89':  // NEWFALSE
        return push({.kind = Kind::kBool});
      case 'K':  // BININT1
        return push_integer(little_endian(1));
      case 'M':  // BININT2
        return push_integer(little_endian(2));
      case 'J':  // BININT
        return push_long(4);
      case '\x8a':  // LONG1
        return push_long(little_endian(1));
      case 'G': {  // BINFLOAT, big-endian
        std::uint64_t bits = 0;
        for (const char byte : take(8)) bits = bits << 8 | static_cast<unsigned char>(byte);
        return push({.kind = Kind::kReal, .real = std::bit_cast<double>(bits)});
      }
      case 'X':  // BINUNICODE
      case 'T':  // BINSTRING
        return push_text(little_endian(4));
      case '\x8c':  // SHORT_BINUNICODE
      case 'U':     // SHORT_BINSTRING
        return push_text(little_endian(1));
      case ')':
        return push_sequence({});
      case ']':
        return push_sequence({});
      case '}':
        return push({.kind = Kind::kDictionary});
      case 't':  // TUPLE
      case 'l':  // LIST
        return push_sequence(pop_marked());
      case 'd': {  // DICT
        const Values values = pop_marked();
        push({.kind = Kind::kDictionary});
        return put_into(Kind::kDictionary, values);
      }
      case '\x85':
        return push_last(1);
      case '\x86':
        return push_last(2);
      case '\x87':
        return push_last(3);
      case 's': {  // SETITEM
        PickleValue* const value = pop();
        PickleValue* const key = pop();
        return put_into(Kind::kDictionary, {key, value});
      }
      case 'u':  // SETITEMS
        return put_into(Kind::kDictionary, pop_marked());
      case 'a': {  // APPEND
        PickleValue* const value = pop();
        return put_into(Kind::kSequence, {value});
      }
      case 'e':  // APPENDS
        return put_into(Kind::kSequence, pop_marked());
      case 'c': {  // GLOBAL
        std::string name(line());
        return push_global(std::move(name.append(" ").append(line())));
      }
      case '\x93': {  // STACK_GLOBAL
        const PickleValue* const name = pop();
        const PickleValue* const module = pop();
        return push_global(module->text + " " + name->text);
      }
      case 'R':
        return push_call();
      case 'b':  // BUILD: attributes of an object, such as the versions that a state_dict notes
        pop();
        return;
      case 'Q':  // BINPERSID
        return push({.kind = Kind::kPersistentId, .items = {pop()}});
      case 'q':  // BINPUT
        return remember(little_endian(1));
      case 'r':  // LONG_BINPUT
        return remember(little_endian(4));
      case '\x94':  // MEMOIZE
        return remember(memo_.size());
      case 'h':  // BINGET
        return recall(little_endian(1));
      case 'j':  // LONG_BINGET
        return recall(little_endian(4));
      default:
        fail(fmt::format("opcode {:#04x}, which is no tensor's part,", static_cast<unsigned char>(opcode)));
    }
  }

  Pickle& pickle_;
  std::string_view bytes_;
  const std::string& path_;
  const std::vector<std::string_view>& globals_;
  MemoryBudget budget_;
  std::size_t at_ = 0;
  std::size_t opcode_at_ = 0;
  Values stack_;
  std::vector<std::size_t> marks_;  ///< sizes of the stack
  std::unordered_map<std::uint64_t, PickleValue*> memo_;
};

Pickle::Pickle(std::string_view bytes, const std::string& path, const std::vector<std::string_view>& globals) {
  root_ = PickleReader(*this, bytes, path, globals).run();
}

}  // namespace lockstep::checkpoint
