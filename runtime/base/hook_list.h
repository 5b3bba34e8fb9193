// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace lockstep {

/// A hook that was registered. It stays so when this goes.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  /// Takes the hook away. Does nothing where it, or what it was registered with, is gone.
  void remove() {
    if (remove_) std::exchange(remove_, nullptr)();
  }

 private:
  std::function<void()> remove_;
};

/// Hooks in the order in which they were registered.
template <class Hook>
class HookList {
 public:
  HookHandle add(Hook hook) {
    const auto added = std::make_shared<const Hook>(std::move(hook));
    hooks_->push_back(added);
    return HookHandle([hooks = std::weak_ptr(hooks_), added = std::weak_ptr(added)] {
      const auto list = hooks.lock();
      if (list) std::erase(*list, added.lock());
    });
  }
  bool empty() const { return hooks_->empty(); }
  /// A hook may register and remove hooks, itself too: that counts from the next call on.
  template <class Visit>
  void for_each(const Visit& visit) const {
    const std::vector<std::shared_ptr<const Hook>> hooks = *hooks_;
    for (const auto& hook : hooks) visit(*hook);
  }

 private:
  std::shared_ptr<std::vector<std::shared_ptr<const Hook>>> hooks_ =
      std::make_shared<std::vector<std::shared_ptr<const Hook>>>();
};

}  // namespace lockstep
