// upf/file.h: names of profile files, and their atomic replacement.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "profile/base/bytes.h"
#include "uptier/result.h"

namespace uptier::profile {

// The values of %p, %h and %t.
struct NameParts {
  uint64_t process = 0;
  std::string host;
  uint64_t time = 0;
};

// Fails if a name has a % that does not begin one of %p %h %t %c %%.
Status check_name(std::string_view pattern);

// Returns the name for a pattern. %c is the least number for which `exists` returns false.
std::string expand_name(std::string_view pattern, const NameParts& parts,
                        const std::function<bool(const std::string&)>& exists);

// Says whether to wait until the disk has the new file. Without waiting, a power failure may leave
// neither file; a killed process still leaves one of them.
enum class Sync : uint8_t { kYes, kNo };

// Replaces a file atomically: writes a new one next to it (mode 0600), completely and to the disk,
// and then renames it over the old one, which readers keep. Any failure, power failures included,
// leaves one of the two files intact: it does not wait for the folder. If something other than a
// regular file has that name, it fails.
Status replace_file(const std::string& path, ByteSpan bytes, Sync sync = Sync::kYes);
// The same, with the bytes that `write` writes; it returns 0 or an errno.
Status replace_file(const std::string& path, const std::function<int(int fd)>& write,
                    Sync sync = Sync::kYes);

}  // namespace uptier::profile
