// ImageView: a code image in memory, every byte of which was checked.
//
//   Thread: any; constant.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "profile/base/bytes.h"
#include "profile/base/sha256.h"
#include "profile/image/image_format.h"
#include "profile/image/image_key.h"
#include "uptier/result.h"

namespace uptier::profile {

class ImageView {
 public:
  struct Row {
    uint32_t function = 0;
    uint32_t size = 0;
    uint64_t offset = 0;  // in the file
  };
  // The methods of one content.
  struct Content {
    Sha256 hash{};
    uint64_t methods = 0;
    ByteSpan rows;

    Row row(uint64_t n) const;
  };

  // Checks a whole image; it must outlive the view. Errors: kCorruptInput, with the offset and the
  // broken rule; kUnsupported for another version. Cost: linear.
  static Result<ImageView> open(ByteSpan file);

  const ImageKey& key() const { return key_; }
  std::span<const Content> contents() const { return contents_; }
  // Returns the methods of a content, or null.
  const Content* find(const Sha256& content) const;
  // Returns the record of a function, or nothing. Logarithmic.
  ByteSpan find(const Content& content, uint32_t function) const;
  ByteSpan record_at(const Row& row) const { return file_.subspan(row.offset, row.size); }
  std::span<const Bytes> objects() const { return objects_; }
  // A profile file; empty if there is none.
  ByteSpan profile() const { return profile_; }
  uint64_t methods() const { return methods_; }
  uint64_t bytes() const { return file_.size(); }

 private:
  struct Part {
    uint64_t begin = 0, end = 0;
  };
  Status read(ByteSpan payload, uint16_t type, uint64_t at);
  Status read_key(ByteSpan payload);
  Status read_objects(ByteSpan payload);
  Status read_index(ByteSpan payload);
  Status check_rows(const Content& content) const;

  ByteSpan file_;
  ImageKey key_;
  std::vector<Content> contents_;
  std::vector<Bytes> objects_;
  std::vector<Part> code_;  // payloads of code records, by rising offset
  ByteSpan profile_;
  uint64_t methods_ = 0;
  uint32_t seen_ = 0;  // kinds, by bit
};

}  // namespace uptier::profile
