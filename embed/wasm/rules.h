// rules.h: what modules are read and validated by. After the door of read_module.h.
#pragma once

#include <cstdio>
#include <string>

#include "wabt/binary-reader.h"
#include "wabt/shared-validator.h"

namespace uptier::wasm {

// Limits that engines agree on; valid modules beyond them are refused.
inline constexpr uint32_t kMaxLocals = 50000;

inline wabt::Features served_features() {
  wabt::Features f;  // the library's defaults have sign extension, multiple values, ... on
  // Only the encoding of reference types is supported, which compilers use in every module; see refuse_ref.
  f.enable_reference_types();
  f.disable_simd();
  f.disable_exceptions();
  f.disable_threads();
  f.disable_function_references();
  f.disable_tail_call();
  f.disable_gc();
  f.disable_memory64();
  f.disable_multi_memory();
  f.disable_extended_const();
  f.disable_relaxed_simd();
  f.enable_bulk_memory();
  return f;
}

inline wabt::ReadBinaryOptions reader_options() {
  wabt::ReadBinaryOptions options;
  options.features = served_features();
  // Names are read apart: this reader refuses modules whose name section is not the last.
  options.read_debug_names = false;
  options.stop_on_first_error = true;
  options.fail_on_custom_section_error = false;
  return options;
}

// Some rules of validation are checked by the reader already; they are told apart by their words.
inline bool is_validation_rule(const std::string& message) {
  for (const char* words : {"memory index", "load/store memory", "no memory to copy"}) {
    if (message.starts_with(words)) return true;
  }
  return false;
}

inline std::string hex(uint64_t number) {
  char text[20];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

inline std::string at_offset(uint64_t offset, const std::string& message) {
  return "at offset " + hex(offset) + ": " + message;
}

// The rules for bodies: all declarations of the sections before them.
struct Rules {
  Rules() : validator(&errors, wabt::ValidateOptions(served_features())) {}
  Rules(const Rules&) = delete;
  Rules& operator=(const Rules&) = delete;

  wabt::Errors errors;
  wabt::SharedValidator validator;
  bool has_data_count = false;
};

}  // namespace uptier::wasm
