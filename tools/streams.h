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

// Returns a name under which a file can be opened repeatedly, and mapped. For stdin ("-"), pipes and
// devices it names a copy in memory, which lives as long as the process. A path that cannot be read is
// returned unchanged: opening it reports why.
std::string seekable(const std::string& path);

// Fails if more than one path is stdin, which can be read only once.
Status check_stdin(std::initializer_list<std::string_view> paths);
Status check_stdin(std::span<const std::string> paths);

// Writes to stdout ("-"), or replaces a file (profile/upf/file.h). Errors of stdout
// are noticed when the process ends.
Status write_output(const std::string& path, std::span<const std::byte> bytes);
// The same of bytes that lie in pieces.
Status write_output(const std::string& path, const profile::SegmentPieces& pieces);

// The same for text that each run writes again: it does not wait for the disk, and pipes and devices
// ("/dev/fd/3") are written to directly.
Status write_text(const std::string& path, const std::string& text);

}  // namespace uptier::tools
