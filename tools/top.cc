// uptier top: where a running process spends its time, again and again.
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>

#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/top_print.h"
#include "tools/top_rows.h"
#include "uptier/live_time.h"

namespace uptier::tools {
namespace {

constexpr uint64_t kUsualRows = 20;
constexpr int kLinesAround = 4;  // of a table: two above, one below, and the cursor's
constexpr const char* kClear = "\x1b[H\x1b[2J";

// A word with a "/" is the path of a socket.
Result<std::unique_ptr<LiveView>> view_of(const std::string& word) {
  if (word.find('/') != word.npos) return LiveView::of_socket(word);
  uint64_t process = 0;
  const char* end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, process);
  if (error == std::errc() && at == end) return LiveView::of_process(process);
  return Error{ErrorCode::kInvalidArgument,
               "\"" + word + "\" is neither the id of a process nor the path of a socket"};
}

uint64_t rows_of(const TopCommand& c, bool screen) {
  if (c.rows >= 0) return static_cast<uint64_t>(c.rows);
  if (c.json) return 0;
  winsize size{};
  const bool known = screen && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  if (!known || size.ws_row == 0) return kUsualRows;
  return static_cast<uint64_t>(std::max(size.ws_row - kLinesAround, 1));
}

void wait_seconds(double seconds) {
  const double whole = std::floor(seconds);
  timespec left{static_cast<time_t>(whole), static_cast<long>((seconds - whole) * 1e9)};
  while (::nanosleep(&left, &left) != 0) {}
}

int fail_to_read(const Error& e) {
  return e.code == ErrorCode::kInvalidArgument ? fail(kUsage, e.message) : fail(e);
}

}  // namespace

int top(const TopCommand& c) {
  Result<std::unique_ptr<LiveView>> view = view_of(c.process);
  if (!view) return fail_to_read(view.error());
  const bool screen = !c.json && ::isatty(STDOUT_FILENO) == 1;
  TopRows rows;
  for (uint64_t shown = 0; c.count == 0 || shown < c.count; ++shown) {
    if (shown != 0) wait_seconds(c.interval);
    Result<LiveTime> now = (*view)->read();
    if (!now) {
      const bool ended = shown != 0 && now.error().code == ErrorCode::kNotFound;
      return ended ? fail(kOk, now.error().message) : fail_to_read(now.error());
    }
    const TopTable table = rows.next(std::move(*now));
    const uint64_t most = rows_of(c, screen);
    const std::string text = c.json ? top_line(table, most) : top_text(table, most);
    const char* before = screen ? kClear : shown != 0 && !c.json ? "\n" : "";
    std::printf("%s%s", before, text.c_str());
    if (std::fflush(stdout) != 0) return kFailed;  // the end of the command says why
  }
  return kOk;
}

}  // namespace uptier::tools
