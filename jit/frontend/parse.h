// parse.h: reads the text form of print.h.
//
// A text is a list of functions. A call of `@name` calls the function of that name, wherever it is,
// and MethodId i is the i-th function. If the bracket after a function's signature is missing, its
// block probes are placed and its sites, loops and hash numbered as the builder does it, and loop
// ids and the sites of host probes may be left out.
//
//   Errors: kInvalidInput, "file:line:column: the problem". Any bytes are safe to parse; memory is
//   linear in their number. The parser does not verify the functions.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "jit/ir/module.h"
#include "uptier/builder.h"
#include "uptier/result.h"

namespace uptier::jit {

struct ParseOptions {
  std::string_view file = "<text>";  // for messages
  // The addresses for `call_host @name`; a name that is not in the list keeps a null address.
  std::span<const HostFunction> hosts = {};
};

Result<Module> parse_module(std::string_view text, const ParseOptions& options = {});

// Reads a constant of a type as constant_text writes it; also hex floats, `inf`, `nan`, `null`.
// Returns nothing if it is not one or does not fit.
std::optional<uint64_t> parse_constant(Type t, std::string_view text);

}  // namespace uptier::jit
