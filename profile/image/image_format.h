// image_format.h: a code image on disk: code made ahead of time, for one build of the library, one
// kind of processor and one set of options.
//
//     image := header key code* [objects] [profile] index end
//
// All chunks are records like those of a trace (trace_file.h), with types 0x5560..0x557f and
// sequence numbers that rise by one. A reader checks every byte of the file before it uses any, and
// refuses a file that lacks a part. Records of unknown types in the range are skipped. Checksums
// find accidents, not attackers: an image is as trusted as the executable (docs/images.md).
//
// All integers are little-endian; payloads after the 32 bytes of a record's header:
//
//     header   u64 "uptierim" | u32 version 1 | u32 0
//     key      array build id | array processor | u64 layout | text options
//     code     records of methods, one after the other (tiering/image/method_record.h)
//     objects  u64 count | count * array: build ids of the objects that host functions lie in
//     profile  a profile file
//     index    u64 contents | contents * {32 bytes hash, u64 methods, methods * row}, rows rise by function
//              row: u32 function, u32 size, u64 offset of its record in the file
//     end      u64 methods | u64 offset of this record
//
// An array is a u64 length and the bytes, padded with zeros to a multiple of 8.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uptier::profile {

enum class ImageKind : uint16_t {
  kHeader = 0x5560,
  kKey = 0x5561,
  kCode = 0x5562,
  kIndex = 0x5563,
  kObjects = 0x5564,
  kProfile = 0x5565,
  kEnd = 0x557f,
};
inline constexpr uint16_t kFirstImageType = 0x5560;
inline constexpr uint16_t kLastImageType = 0x557f;
inline constexpr uint64_t kImageName = 0x6d69726569747075;  // "uptierim"
inline constexpr uint32_t kImageVersion = 1;
inline constexpr size_t kCodeGroupBytes = 1 << 20;  // a code record, unless one method is larger
inline constexpr size_t kIndexRowBytes = 16;
// The largest image that is read: offsets of code have 31 bits, and so much is read into memory.
inline constexpr uint64_t kMostImageBytes = uint64_t{1} << 31;

}  // namespace uptier::profile
