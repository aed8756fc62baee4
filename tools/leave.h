// leave: the end of the process.
#pragma once

namespace uptier::tools {

// Writes out stdout. Returns `code`, or that of a failure if stdout did not take all of it.
int written(int code);

// Ends the process with written(code), and takes nothing apart that goes with it: that of a large
// module takes longer than many a program runs. For who has nothing left to write but stdout.
[[noreturn]] void leave(int code);

}  // namespace uptier::tools
