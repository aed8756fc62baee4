// fail: how a command ends that could not do what it was asked to.
#pragma once

#include <cstdio>
#include <string>

#include "tools/commands.h"
#include "uptier/result.h"

namespace uptier::tools {

// Says why on stderr. Returns `code`, for the command to return.
inline int fail(int code, const std::string& why) {
  std::fprintf(stderr, "uptier: %s\n", why.c_str());
  return code;
}

// Reports that memory was refused, without allocating.
inline int fail_without_memory() {
  std::fputs("uptier: out of memory\n", stderr);
  return kRefused;
}

inline int fail(const Error& e) {
  return fail(e.code == ErrorCode::kCorruptInput ? kCorrupt : kFailed, e.message);
}

}  // namespace uptier::tools
