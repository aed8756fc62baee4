// errno.cc: host errors in the guest's numbers. One row per error; both tables are complete.
#include <cerrno>

#include "embed/wasi/abi.h"
#include "embed/wasi/wasi.h"

namespace uptier::wasm {
namespace {

using wasi::Errno;

struct Row {
  Errno guest;
  int host;  // 0 when the host has no such error
  const char* name;
};

// Sorted by guest number, so that the row of errno n is row n.
constexpr Row kRows[] = {
    {Errno::kSuccess, 0, "ESUCCESS"},
    {Errno::k2big, E2BIG, "E2BIG"},
    {Errno::kAcces, EACCES, "EACCES"},
    {Errno::kAddrinuse, EADDRINUSE, "EADDRINUSE"},
    {Errno::kAddrnotavail, EADDRNOTAVAIL, "EADDRNOTAVAIL"},
    {Errno::kAfnosupport, EAFNOSUPPORT, "EAFNOSUPPORT"},
    {Errno::kAgain, EAGAIN, "EAGAIN"},
    {Errno::kAlready, EALREADY, "EALREADY"},
    {Errno::kBadf, EBADF, "EBADF"},
    {Errno::kBadmsg, EBADMSG, "EBADMSG"},
    {Errno::kBusy, EBUSY, "EBUSY"},
    {Errno::kCanceled, ECANCELED, "ECANCELED"},
    {Errno::kChild, ECHILD, "ECHILD"},
    {Errno::kConnaborted, ECONNABORTED, "ECONNABORTED"},
    {Errno::kConnrefused, ECONNREFUSED, "ECONNREFUSED"},
    {Errno::kConnreset, ECONNRESET, "ECONNRESET"},
    {Errno::kDeadlk, EDEADLK, "EDEADLK"},
    {Errno::kDestaddrreq, EDESTADDRREQ, "EDESTADDRREQ"},
    {Errno::kDom, EDOM, "EDOM"},
    {Errno::kDquot, EDQUOT, "EDQUOT"},
    {Errno::kExist, EEXIST, "EEXIST"},
    {Errno::kFault, EFAULT, "EFAULT"},
    {Errno::kFbig, EFBIG, "EFBIG"},
    {Errno::kHostunreach, EHOSTUNREACH, "EHOSTUNREACH"},
    {Errno::kIdrm, EIDRM, "EIDRM"},
    {Errno::kIlseq, EILSEQ, "EILSEQ"},
    {Errno::kInprogress, EINPROGRESS, "EINPROGRESS"},
    {Errno::kIntr, EINTR, "EINTR"},
    {Errno::kInval, EINVAL, "EINVAL"},
    {Errno::kIo, EIO, "EIO"},
    {Errno::kIsconn, EISCONN, "EISCONN"},
    {Errno::kIsdir, EISDIR, "EISDIR"},
    {Errno::kLoop, ELOOP, "ELOOP"},
    {Errno::kMfile, EMFILE, "EMFILE"},
    {Errno::kMlink, EMLINK, "EMLINK"},
    {Errno::kMsgsize, EMSGSIZE, "EMSGSIZE"},
    {Errno::kMultihop, EMULTIHOP, "EMULTIHOP"},
    {Errno::kNametoolong, ENAMETOOLONG, "ENAMETOOLONG"},
    {Errno::kNetdown, ENETDOWN, "ENETDOWN"},
    {Errno::kNetreset, ENETRESET, "ENETRESET"},
    {Errno::kNetunreach, ENETUNREACH, "ENETUNREACH"},
    {Errno::kNfile, ENFILE, "ENFILE"},
    {Errno::kNobufs, ENOBUFS, "ENOBUFS"},
    {Errno::kNodev, ENODEV, "ENODEV"},
    {Errno::kNoent, ENOENT, "ENOENT"},
    {Errno::kNoexec, ENOEXEC, "ENOEXEC"},
    {Errno::kNolck, ENOLCK, "ENOLCK"},
    {Errno::kNolink, ENOLINK, "ENOLINK"},
    {Errno::kNomem, ENOMEM, "ENOMEM"},
    {Errno::kNomsg, ENOMSG, "ENOMSG"},
    {Errno::kNoprotoopt, ENOPROTOOPT, "ENOPROTOOPT"},
    {Errno::kNospc, ENOSPC, "ENOSPC"},
    {Errno::kNosys, ENOSYS, "ENOSYS"},
    {Errno::kNotconn, ENOTCONN, "ENOTCONN"},
    {Errno::kNotdir, ENOTDIR, "ENOTDIR"},
    {Errno::kNotempty, ENOTEMPTY, "ENOTEMPTY"},
    {Errno::kNotrecoverable, ENOTRECOVERABLE, "ENOTRECOVERABLE"},
    {Errno::kNotsock, ENOTSOCK, "ENOTSOCK"},
    {Errno::kNotsup, ENOTSUP, "ENOTSUP"},
    {Errno::kNotty, ENOTTY, "ENOTTY"},
    {Errno::kNxio, ENXIO, "ENXIO"},
    {Errno::kOverflow, EOVERFLOW, "EOVERFLOW"},
    {Errno::kOwnerdead, EOWNERDEAD, "EOWNERDEAD"},
    {Errno::kPerm, EPERM, "EPERM"},
    {Errno::kPipe, EPIPE, "EPIPE"},
    {Errno::kProto, EPROTO, "EPROTO"},
    {Errno::kProtonosupport, EPROTONOSUPPORT, "EPROTONOSUPPORT"},
    {Errno::kPrototype, EPROTOTYPE, "EPROTOTYPE"},
    {Errno::kRange, ERANGE, "ERANGE"},
    {Errno::kRofs, EROFS, "EROFS"},
    {Errno::kSpipe, ESPIPE, "ESPIPE"},
    {Errno::kSrch, ESRCH, "ESRCH"},
    {Errno::kStale, ESTALE, "ESTALE"},
    {Errno::kTimedout, ETIMEDOUT, "ETIMEDOUT"},
    {Errno::kTxtbsy, ETXTBSY, "ETXTBSY"},
    {Errno::kXdev, EXDEV, "EXDEV"},
    {Errno::kNotcapable, 0, "ENOTCAPABLE"},
};
constexpr uint32_t kRowCount = sizeof kRows / sizeof kRows[0];

constexpr bool rows_are_in_order() {
  for (uint32_t i = 0; i < kRowCount; ++i) {
    if (static_cast<uint32_t>(kRows[i].guest) != i) return false;
  }
  return kRowCount == static_cast<uint32_t>(Errno::kNotcapable) + 1;
}
static_assert(rows_are_in_order());

}  // namespace

namespace wasi {

Errno from_host(int host_errno) {
  if (host_errno == 0) return Errno::kSuccess;
  for (const Row& row : kRows) {
    if (row.host == host_errno) return row.guest;
  }
  return Errno::kIo;
}

}  // namespace wasi

const char* wasi_errno_name(uint32_t wasi_errno) {
  return wasi_errno < kRowCount ? kRows[wasi_errno].name : "E?";
}

}  // namespace uptier::wasm
