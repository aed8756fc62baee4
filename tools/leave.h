// leave: the end of the process.
#pragma once

namespace uptier::tools {

// Flushes stdout. Returns `code`, or the code of a failure if stdout did not accept everything.
int written(int code);

// Ends the process with written(code), without running destructors: to destroy a large module takes
// longer than many programs run. Call it when only stdout is left to be written.
[[noreturn]] void leave(int code);

}  // namespace uptier::tools
