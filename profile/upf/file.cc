#include "profile/upf/file.h"

#include <unistd.h>

#include <cerrno>

#include "profile/base/new_file.h"
#include "profile/base/write_all.h"

namespace uptier::profile {
namespace {

constexpr uint64_t kMaxCounter = 1 << 20;

// Returns 0 or an errno.
int sync_file(int fd) {
  int synced;
  do { synced = ::fsync(fd); } while (synced != 0 && errno == EINTR);
  return synced != 0 ? errno : 0;
}

std::string substitute(std::string_view pattern, const NameParts& parts, uint64_t counter) {
  std::string name;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%' || i + 1 == pattern.size()) {
      name += pattern[i];
      continue;
    }
    switch (pattern[++i]) {
      case 'p': name += std::to_string(parts.process); break;
      case 'h': name += parts.host; break;
      case 't': name += std::to_string(parts.time); break;
      case 'c': name += std::to_string(counter); break;
      default: name += pattern[i]; break;
    }
  }
  return name;
}

}  // namespace

Status check_name(std::string_view pattern) {
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') continue;
    ++i;
    const bool known =
        i < pattern.size() && std::string_view("phtc%").find(pattern[i]) != std::string_view::npos;
    if (!known) {
      return Error{ErrorCode::kInvalidArgument, "option profile: \"" + std::string(pattern) +
                                                    "\" has a % that is none of %p %h %t %c %%"};
    }
  }
  if (pattern.find('\0') != std::string_view::npos) {
    return Error{ErrorCode::kInvalidArgument, "option profile: a name with a zero byte"};
  }
  return {};
}

std::string expand_name(std::string_view pattern, const NameParts& parts,
                        const std::function<bool(const std::string&)>& exists) {
  std::string name = substitute(pattern, parts, 0);
  for (uint64_t counter = 1; counter < kMaxCounter; ++counter) {
    const std::string next = substitute(pattern, parts, counter);
    if (next == name || !exists(name)) break;
    name = next;
  }
  return name;
}

Status replace_file(const std::string& path, ByteSpan bytes, Sync sync) {
  return replace_file(
      path, [&](int fd) { return write_all(fd, bytes); }, sync);
}

Status replace_file(const std::string& path, const std::function<int(int fd)>& write, Sync sync) {
  Result<NewFile> file = NewFile::create(path);
  if (!file.ok()) return file.error();
  int error = write(file->fd());
  if (error == 0 && sync == Sync::kYes) error = sync_file(file->fd());
  if (const int closed = file->close(); error == 0) error = closed;
  if (error != 0) return io_error(path, "cannot write the file", error);
  error = file->replace();
  if (error != 0) return io_error(path, "cannot replace the file", error);
  return {};
}

}  // namespace uptier::profile
