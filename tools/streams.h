// streams.h: `-` and pipes where a command takes a file.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "profile/upf/segment_writer.h"
#include "uptier/result.h"

namespace uptier::tools {

inline constexpr const char* kStream = "-";  // stdin, or stdout

// Returns a name under which a file can be opened again and again, and mapped: of stdin ("-"), and
// of what is neither regular nor a directory, that of a copy in memory, which lives as long as the
// process. Whatever cannot be read comes back as it is: opening it says why.
std::string seekable(const std::string& path);

// Fails where stdin, which can be read once, is what more than one of these is: naming that.
Status check_stdin(std::initializer_list<std::string_view> paths);
Status check_stdin(std::span<const std::string> paths);

// Writes to stdout ("-"), or replaces a file (profile/upf/file.h). What stdout does not take is
// noticed when the process ends.
Status write_output(const std::string& path, std::span<const std::byte> bytes);
// The same of bytes that lie in pieces.
Status write_output(const std::string& path, const profile::SegmentPieces& pieces);

// The same of text that is made anew by each run: nobody waits for the disk, and a pipe or a device
// ("/dev/fd/3") is written to as it is.
Status write_text(const std::string& path, const std::string& text);

}  // namespace uptier::tools
