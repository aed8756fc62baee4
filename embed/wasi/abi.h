// abi.h: the numbers of WASI preview 1, and where each field of its structures lies.
//
// Source: the witx description of wasi_snapshot_preview1 and the offsets that wasi-libc's
// <wasi/api.h> asserts. Every structure is little-endian.
#pragma once

#include <cstdint>

namespace uptier::wasm::wasi {

enum class Errno : uint16_t {
  kSuccess = 0,
  k2big,
  kAcces,
  kAddrinuse,
  kAddrnotavail,
  kAfnosupport,
  kAgain,
  kAlready,
  kBadf,
  kBadmsg,
  kBusy,
  kCanceled,
  kChild,
  kConnaborted,
  kConnrefused,
  kConnreset,
  kDeadlk,
  kDestaddrreq,
  kDom,
  kDquot,
  kExist,
  kFault,
  kFbig,
  kHostunreach,
  kIdrm,
  kIlseq,
  kInprogress,
  kIntr,
  kInval,
  kIo,
  kIsconn,
  kIsdir,
  kLoop,
  kMfile,
  kMlink,
  kMsgsize,
  kMultihop,
  kNametoolong,
  kNetdown,
  kNetreset,
  kNetunreach,
  kNfile,
  kNobufs,
  kNodev,
  kNoent,
  kNoexec,
  kNolck,
  kNolink,
  kNomem,
  kNomsg,
  kNoprotoopt,
  kNospc,
  kNosys,
  kNotconn,
  kNotdir,
  kNotempty,
  kNotrecoverable,
  kNotsock,
  kNotsup,
  kNotty,
  kNxio,
  kOverflow,
  kOwnerdead,
  kPerm,
  kPipe,
  kProto,
  kProtonosupport,
  kPrototype,
  kRange,
  kRofs,
  kSpipe,
  kSrch,
  kStale,
  kTimedout,
  kTxtbsy,
  kXdev,
  kNotcapable,
};
static_assert(static_cast<int>(Errno::kFault) == 21);
static_assert(static_cast<int>(Errno::kNosys) == 52);
static_assert(static_cast<int>(Errno::kNotcapable) == 76);

// Translates a host errno; one that WASI does not know becomes kIo.
Errno from_host(int host_errno);

using Rights = uint64_t;
inline constexpr Rights kFdDatasync = 1u << 0;
inline constexpr Rights kFdRead = 1u << 1;
inline constexpr Rights kFdSeek = 1u << 2;
inline constexpr Rights kFdFdstatSetFlags = 1u << 3;
inline constexpr Rights kFdSync = 1u << 4;
inline constexpr Rights kFdTell = 1u << 5;
inline constexpr Rights kFdWrite = 1u << 6;
inline constexpr Rights kFdAdvise = 1u << 7;
inline constexpr Rights kFdAllocate = 1u << 8;
inline constexpr Rights kPathCreateDirectory = 1u << 9;
inline constexpr Rights kPathCreateFile = 1u << 10;
inline constexpr Rights kPathLinkSource = 1u << 11;
inline constexpr Rights kPathLinkTarget = 1u << 12;
inline constexpr Rights kPathOpen = 1u << 13;
inline constexpr Rights kFdReaddir = 1u << 14;
inline constexpr Rights kPathReadlink = 1u << 15;
inline constexpr Rights kPathRenameSource = 1u << 16;
inline constexpr Rights kPathRenameTarget = 1u << 17;
inline constexpr Rights kPathFilestatGet = 1u << 18;
inline constexpr Rights kPathFilestatSetSize = 1u << 19;
inline constexpr Rights kPathFilestatSetTimes = 1u << 20;
inline constexpr Rights kFdFilestatGet = 1u << 21;
inline constexpr Rights kFdFilestatSetSize = 1u << 22;
inline constexpr Rights kFdFilestatSetTimes = 1u << 23;
inline constexpr Rights kPathSymlink = 1u << 24;
inline constexpr Rights kPathRemoveDirectory = 1u << 25;
inline constexpr Rights kPathUnlinkFile = 1u << 26;
inline constexpr Rights kPollFdReadwrite = 1u << 27;

// The rights that a descriptor can have by its type. A request for more is reduced silently, as the interface
// allows for rights that do not apply to the type.
inline constexpr Rights kFileOnlyRights =
    kFdRead | kFdSeek | kFdTell | kFdWrite | kFdAdvise | kFdAllocate | kFdFilestatSetSize;
inline constexpr Rights kCommonRights = kFdDatasync | kFdFdstatSetFlags | kFdSync | kFdFilestatGet |
                                        kFdFilestatSetTimes | kPollFdReadwrite;
inline constexpr Rights kDirectoryOnlyRights =
    kPathCreateDirectory | kPathCreateFile | kPathLinkSource | kPathLinkTarget | kPathOpen |
    kFdReaddir | kPathReadlink | kPathRenameSource | kPathRenameTarget | kPathFilestatGet |
    kPathFilestatSetSize | kPathFilestatSetTimes | kPathSymlink | kPathRemoveDirectory |
    kPathUnlinkFile;
inline constexpr Rights kFileRights = kFileOnlyRights | kCommonRights;
inline constexpr Rights kDirectoryRights = kDirectoryOnlyRights | kCommonRights;
inline constexpr Rights kAllRights = kFileRights | kDirectoryRights;

enum class FileType : uint8_t {
  kUnknown = 0,
  kBlockDevice = 1,
  kCharacterDevice = 2,
  kDirectory = 3,
  kRegularFile = 4,
  kSocketDgram = 5,
  kSocketStream = 6,
  kSymbolicLink = 7,
};

// fdflags
inline constexpr uint16_t kFdAppend = 1 << 0;
inline constexpr uint16_t kFdDsync = 1 << 1;
inline constexpr uint16_t kFdNonblock = 1 << 2;
inline constexpr uint16_t kFdRsync = 1 << 3;
inline constexpr uint16_t kFdSyncFlag = 1 << 4;
inline constexpr uint16_t kAllFdFlags = (1 << 5) - 1;

// oflags
inline constexpr uint16_t kOpenCreat = 1 << 0;
inline constexpr uint16_t kOpenDirectory = 1 << 1;
inline constexpr uint16_t kOpenExcl = 1 << 2;
inline constexpr uint16_t kOpenTrunc = 1 << 3;
inline constexpr uint16_t kAllOpenFlags = (1 << 4) - 1;

// lookupflags
inline constexpr uint32_t kLookupFollow = 1 << 0;

// fstflags
inline constexpr uint16_t kSetAtim = 1 << 0;
inline constexpr uint16_t kSetAtimNow = 1 << 1;
inline constexpr uint16_t kSetMtim = 1 << 2;
inline constexpr uint16_t kSetMtimNow = 1 << 3;
inline constexpr uint16_t kAllSetTimeFlags = (1 << 4) - 1;

enum ClockId : uint32_t { kRealtime = 0, kMonotonic = 1, kProcessCpu = 2, kThreadCpu = 3 };

// Event types, and the one flag of each direction.
inline constexpr uint8_t kEventClock = 0;
inline constexpr uint8_t kEventFdRead = 1;
inline constexpr uint8_t kEventFdWrite = 2;
inline constexpr uint16_t kEventHangup = 1 << 0;
inline constexpr uint16_t kClockAbstime = 1 << 0;

// Layouts: the size of a structure and the offsets of its fields, in bytes.
namespace layout {
inline constexpr uint32_t kIovec = 8, kIovecBuf = 0, kIovecLength = 4;
inline constexpr uint32_t kPrestat = 8, kPrestatTag = 0, kPrestatNameLength = 4;
inline constexpr uint32_t kFdstat = 24, kFdstatType = 0, kFdstatFlags = 2, kFdstatBase = 8,
                          kFdstatInheriting = 16;
inline constexpr uint32_t kFilestat = 64, kFilestatDev = 0, kFilestatIno = 8, kFilestatType = 16,
                          kFilestatNlink = 24, kFilestatSize = 32, kFilestatAtim = 40,
                          kFilestatMtim = 48, kFilestatCtim = 56;
inline constexpr uint32_t kDirent = 24, kDirentNext = 0, kDirentIno = 8, kDirentNameLength = 16,
                          kDirentType = 20;
inline constexpr uint32_t kSubscription = 48, kSubUserdata = 0, kSubTag = 8, kSubClockId = 16,
                          kSubTimeout = 24, kSubPrecision = 32, kSubClockFlags = 40, kSubFd = 16;
inline constexpr uint32_t kEvent = 32, kEventUserdata = 0, kEventError = 8, kEventType = 10,
                          kEventNbytes = 16, kEventFlags = 24;
}  // namespace layout

}  // namespace uptier::wasm::wasi
