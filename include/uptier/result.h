// result.h: errors as values.
//
// Functions that can fail return Result<T> or Status, unless their comments say otherwise.
// Functions of Runtime throw nothing; values that the caller owns (Profile, Schema,
// FunctionBuilder) throw std::bad_alloc, like containers. An Error says in one sentence for a
// person which operation failed, where, and which rule was broken; its code is for programs.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace uptier {

enum class ErrorCode : uint8_t {
  kInvalidArgument,    // the caller broke a documented precondition
  kInvalidInput,       // text or IR that breaks a rule
  kCorruptInput,       // a binary file that breaks a rule of its format
  kUnsupported,        // valid, but not handled by this build or machine
  kResourceExhausted,  // a limit or budget of the library is reached, or memory is refused
  kIo,                 // the operating system refused a file operation
  kNotFound,           // nothing has this name, number or id
  kForked,             // the runtime belongs to the parent process: see Runtime
};
const char* error_code_name(ErrorCode code);

struct [[nodiscard]] Error {
  ErrorCode code;
  std::string message;

  friend bool operator==(const Error&, const Error&) = default;
};

// Holds either a T or an Error. value() of an Error, or error() of a value, is undefined behaviour;
// without NDEBUG it is an assertion.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(implicit)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(implicit)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  const T& value() const& {
    assert(ok());
    return *std::get_if<0>(&state_);
  }
  T&& value() && {
    assert(ok());
    return std::move(*std::get_if<0>(&state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  std::variant<T, Error> state_;
};

// A Result without a value: ok, or an Error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(implicit)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    assert(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace uptier
