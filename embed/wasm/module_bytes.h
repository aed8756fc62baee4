// ModuleBytes: the bytes of a module, and whatever holds them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace uptier::wasm {

// Bytes that stay where they are when this is moved; copies share them.
class ModuleBytes {
 public:
  ModuleBytes() = default;
  // Implicit: most callers have a vector.
  ModuleBytes(std::vector<uint8_t> bytes) {
    auto held = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
    view_ = *held;
    holder_ = std::move(held);
  }
  // Bytes of another holder, which lives until the last copy is destroyed. Nobody may write to them: the
  // compiled bytes must be the validated ones. So do not pass a mapped file, which others can change or
  // truncate.
  ModuleBytes(std::span<const uint8_t> view, std::shared_ptr<const void> holder)
      : view_(view), holder_(std::move(holder)) {}

  const uint8_t* data() const { return view_.data(); }
  size_t size() const { return view_.size(); }
  uint8_t operator[](size_t at) const { return view_[at]; }
  operator std::span<const uint8_t>() const { return view_; }

 private:
  std::span<const uint8_t> view_;
  std::shared_ptr<const void> holder_;
};

}  // namespace uptier::wasm
