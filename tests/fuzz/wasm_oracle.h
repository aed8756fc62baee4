// WasmOracle: instances of WebAssembly modules in wabt's interpreter, which shares nothing with our
// engine except the reader of the binary format.
//
// Its .cc is C++17, because wabt's headers do not compile as C++20. So this header must compile as
// both.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace uptier::fuzz {

// Adds instances one by one; all instances import the first one as "env". Thread: one.
class WasmOracle {
 public:
  // The types of numbers; bits are zero-extended.
  enum class Kind : uint8_t { kI32, kI64, kF32, kF64 };
  struct Number {
    Kind kind = Kind::kI32;
    uint64_t bits = 0;
  };
  struct Answer {
    bool trapped = false;
    std::string why;  // reason of the trap
    std::vector<Number> results;
  };
  struct Memory {
    const uint8_t* data = nullptr;
    uint64_t size = 0;
  };

  WasmOracle();
  ~WasmOracle();
  WasmOracle(const WasmOracle&) = delete;
  WasmOracle& operator=(const WasmOracle&) = delete;

  // All of these abort on an invalid module or request.
  void load(const std::vector<uint8_t>& bytes);
  // `from`: the number of the instance that is imported as "in".
  void instantiate(size_t module, size_t from);
  Answer call(size_t instance, const std::string& name, const std::vector<Number>& args);
  Number global(size_t instance, const std::string& name) const;
  void set_i32(size_t instance, const std::string& name, uint32_t value);
  Memory memory(size_t instance, const std::string& name) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace uptier::fuzz
