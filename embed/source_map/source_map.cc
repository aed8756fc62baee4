#include "embed/source_map/source_map.h"

#include <algorithm>
#include <array>

#include "embed/dwarf/debug_sections.h"
#include "embed/source_map/json_text.h"

namespace uptier::source_map {
namespace {

Error broken(const std::string& where, size_t at, const std::string& rule) {
  return {ErrorCode::kCorruptInput, where + " at " + std::to_string(at) + ": " + rule};
}

// Returns the value of a base64 digit, or -1.
int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

class MappingsReader {
 public:
  MappingsReader(std::string_view text, size_t sources, std::vector<dwarf::Row>& rows,
                 dwarf::Budget& budget)
      : text_(text), sources_(sources), rows_(rows), budget_(budget) {}

  Status run() {
    while (at_ < text_.size()) {
      if (text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (text_[at_] == ';') {
        ++at_;
        ++line_;
        continue;
      }
      const size_t begin = at_;
      if (Status s = mapping(begin); !s) return s;
    }
    return {};
  }

 private:
  static Error wrong(size_t at, const std::string& rule) { return broken("mappings", at, rule); }

  // Reads one mapping: an offset, and the place of its code if that has one.
  Status mapping(size_t begin) {
    std::array<int64_t, 5> fields{};
    size_t count = 0;
    while (at_ < text_.size() && text_[at_] != ',' && text_[at_] != ';') {
      if (count == fields.size()) return wrong(begin, "a mapping has more than 5 numbers");
      if (!number(fields[count++])) {
        return wrong(begin, "a number is not base64 VLQ, or has more than 32 bits");
      }
    }
    if (count != 1 && count != 4 && count != 5) {
      return wrong(begin, "a mapping has neither 1, 4 nor 5 numbers");
    }
    if (line_ != 0) return wrong(begin, "a module has only one line, and this is of another");
    if (fields[0] < 0) return wrong(begin, "offsets do not ascend");
    offset_ += fields[0];
    if (offset_ > UINT32_MAX) return wrong(begin, "an offset has more than 32 bits");
    if (count > 1) {
      for (size_t i = 0; i < 3; ++i) {
        place_[i] += fields[i + 1];
        if (place_[i] < 0 || place_[i] >= INT32_MAX) {
          return wrong(begin, "a source, line or column is negative or has more than 31 bits");
        }
      }
      if (static_cast<uint64_t>(place_[0]) >= sources_) {
        return wrong(begin, "there is no source with this number");
      }
    }
    return push(count > 1);
  }

  Status push(bool has_place) {
    dwarf::Row row;
    row.address = static_cast<uint32_t>(offset_);
    row.is_stmt = true;
    if (has_place) {
      row.file = static_cast<uint32_t>(place_[0]);
      row.line = static_cast<uint32_t>(place_[1]) + 1;
      row.column = static_cast<uint16_t>(std::min<int64_t>(place_[2] + 1, UINT16_MAX));
    }
    // Of several mappings of one offset the last one holds.
    if (!rows_.empty() && rows_.back().address == row.address) {
      rows_.back() = row;
      return {};
    }
    return budget_.push(rows_, row) ? Status() : dwarf::too_large();
  }

  // Reads a number: 5 bits a digit, the lowest first, whose lowest is the sign.
  bool number(int64_t& value) {
    uint64_t bits = 0;
    for (unsigned shift = 0; shift < 35 && at_ < text_.size(); shift += 5) {
      const int d = digit(text_[at_]);
      if (d < 0) return false;
      ++at_;
      bits |= uint64_t{static_cast<unsigned>(d) & 31u} << shift;
      if ((d & 32) != 0) continue;
      value = static_cast<int64_t>(bits >> 1);
      if ((bits & 1) != 0) value = -value;
      return bits >> 1 <= UINT32_MAX;
    }
    return false;
  }

  std::string_view text_;
  size_t sources_;
  std::vector<dwarf::Row>& rows_;
  dwarf::Budget& budget_;
  size_t at_ = 0;
  size_t line_ = 0;
  int64_t offset_ = 0;
  std::array<int64_t, 3> place_{};  // source, line, column
};

class Reader {
 public:
  Reader(std::string_view json, dwarf::Budget& budget) : json_(json), budget_(budget) {}

  Result<SourceMap> run() {
    SourceMap made;
    uint32_t version = 0;
    std::string_view mappings;
    json_.open('{');
    for (std::string_view key; json_.next_key(key);) {
      if (key == "version") {
        version = json_.integer();
      } else if (key == "sourceRoot") {
        if (Status s = text(made.root); !s) return s.error();
      } else if (key == "sources") {
        if (Status s = sources(made.sources); !s) return s.error();
      } else if (key == "mappings") {
        mappings = json_.plain_text();
      } else if (key == "sections") {
        return Error{ErrorCode::kUnsupported,
                     "it is an index map, which has other maps inside: not supported"};
      } else {
        json_.skip();
      }
    }
    if (json_.bad() || !json_.ends()) {
      return broken("JSON", json_.at(), "it is not well-formed, or not a source map");
    }
    if (version != 3) {
      return Error{ErrorCode::kUnsupported,
                   "version " + std::to_string(version) + " is not supported; only 3 is"};
    }
    const Status read = MappingsReader(mappings, made.sources.size(), made.rows, budget_).run();
    if (!read) return read.error();
    return made;
  }

 private:
  // Reads a text, or null, which is an empty one.
  Status text(std::string& out) {
    if (json_.starts('"')) {
      out = json_.text();
      return budget_.take(out.capacity()) ? Status() : dwarf::too_large();
    }
    json_.skip();
    return {};
  }

  Status sources(std::vector<std::string>& out) {
    json_.open('[');
    while (json_.next_item()) {
      if (!budget_.push(out, std::string())) return dwarf::too_large();
      if (Status s = text(out.back()); !s) return s;
    }
    return {};
  }

  JsonText json_;
  dwarf::Budget& budget_;
};

}  // namespace

Result<SourceMap> read_source_map(std::string_view json, dwarf::Budget& budget) {
  return Reader(json, budget).run();
}

}  // namespace uptier::source_map
