// wast.h: a line protocol by which test runners drive the WebAssembly engine.
//
// One command a line on `in`, one final line of answer on `out`, flushed; prints of the guest come
// before it, as lines that begin with "print". Numbers travel as bits in hex, so no NaN is lost.
//
//   module ID PATH            ok | malformed | invalid | unlinkable | trap | exhaustion | error
//   check PATH                ok | malformed | invalid
//   register ID HEXNAME       ok
//   invoke ID HEXNAME V...    ok V... | trap | exhaustion | error
//   repeat N ID HEXNAME V...  the distinct outcomes of N such invokes, joined by " | "
//   get ID HEXNAME            ok V
//   quit
//
// Each answer but ok goes on with a message. HEXNAME: a name's bytes in hex, "-" for the empty
// name. V: i32:HEX, i64:HEX, f32:HEX, f64:HEX.
#pragma once

#include <iosfwd>

#include "embed/wasm/engine.h"
#include "uptier/options.h"

namespace uptier::tools {

// Answers commands until `quit` or the end of `in`. Returns the process's exit code.
int run_wast(const Options& options, const wasm::EngineOptions& engine_options, std::istream& in,
             std::ostream& out);

}  // namespace uptier::tools
