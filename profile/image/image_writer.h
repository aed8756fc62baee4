// ImageWriter: puts a code image together, in memory.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "profile/base/bytes.h"
#include "profile/base/sha256.h"
#include "profile/image/image_format.h"
#include "profile/image/image_key.h"

namespace uptier::profile {

class ImageWriter {
 public:
  explicit ImageWriter(const ImageKey& key);
  ImageWriter(const ImageWriter&) = delete;
  ImageWriter& operator=(const ImageWriter&) = delete;

  // Adds the record of a method; a second one of the same function is left out. Records lie in the
  // file in the order in which they are added.
  void add(const Sha256& content, uint32_t function, ByteSpan record);
  // Returns the file. `objects`: build ids; `profile`: a profile file, or nothing. The writer must
  // not be used afterwards.
  Bytes finish(const std::vector<Bytes>& objects, ByteSpan profile);

  uint64_t methods() const { return methods_; }

 private:
  struct Row {
    uint32_t size = 0;
    uint64_t offset = 0;
  };
  void record(ImageKind kind, ByteSpan payload);
  void close_group();

  Bytes out_;
  Bytes group_;  // records that are not in `out_` yet
  uint32_t sequence_ = 0;
  uint64_t methods_ = 0;
  std::map<Sha256, std::map<uint32_t, Row>> index_;
};

}  // namespace uptier::profile
