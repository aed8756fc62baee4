// upf/file.h: names of profile files, and how one is replaced.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "profile/base/bytes.h"
#include "uptier/result.h"

namespace uptier::profile {

// What %p, %h and %t stand for.
struct NameParts {
  uint64_t process = 0;
  std::string host;
  uint64_t time = 0;
};

// Fails if a name has a % that none of %p %h %t %c %% begins.
Status check_name(std::string_view pattern);

// Returns the name that a pattern stands for. %c is the least number for which `exists` says no.
std::string expand_name(std::string_view pattern, const NameParts& parts,
                        const std::function<bool(const std::string&)>& exists);

// Whether to wait until the disk has the new file. Without, a power failure may leave neither file;
// a process that is killed leaves one of them all the same.
enum class Sync : uint8_t { kYes, kNo };

// Replaces a file at once: a new one beside it (mode 0600), written whole, on the disk, and then
// renamed over the old one, which readers keep. Whatever fails, the power included, leaves one of
// them as it was: the folder is not waited for. Anything but a regular file of that name is refused.
Status replace_file(const std::string& path, ByteSpan bytes, Sync sync = Sync::kYes);
// The same of what `write` writes, which returns 0 or an errno.
Status replace_file(const std::string& path, const std::function<int(int fd)>& write,
                    Sync sync = Sync::kYes);

}  // namespace uptier::profile
