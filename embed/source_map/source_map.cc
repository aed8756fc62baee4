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
  // Reads `text`, whose offsets count from `begin` and whose sources are those from `first` up to `end`.
  // Its rows come after `rows`.
  MappingsReader(std::string_view text, uint32_t begin, size_t first, size_t end,
                 std::vector<dwarf::Row>& rows, dwarf::Budget& budget)
      : text_(text),
        first_(first),
        sources_(end - first),
        rows_(rows),
        budget_(budget),
        offset_(begin) {}

  Status run() {
    // What holds before the first mapping ends here.
    if (!rows_.empty()) {
      if (Status s = push(false); !s) return s;
    }
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
      row.file = static_cast<uint32_t>(first_ + static_cast<size_t>(place_[0]));
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
  size_t first_, sources_;
  std::vector<dwarf::Row>& rows_;
  dwarf::Budget& budget_;
  size_t at_ = 0;
  size_t line_ = 0;
  int64_t offset_;
  std::array<int64_t, 3> place_{};  // source, line, column
};

// What a map has; of an index map, its version.
struct Parts {
  uint32_t version = 0;
  std::string root;
  std::vector<std::string> sources;
  std::string_view mappings;
  bool is_index = false;
};

class Reader {
 public:
  Reader(std::string_view json, dwarf::Budget& budget) : json_(json), budget_(budget) {}

  Result<SourceMap> run() {
    Parts whole;
    if (Status s = map(whole, true); !s) return s.error();
    if (json_.bad() || !json_.ends()) {
      return broken("JSON", json_.at(), "it is not well-formed, or not a source map");
    }
    if (Status s = whole.is_index ? check_version(whole) : add(whole, 0); !s) return s.error();
    return std::move(made_);
  }

 private:
  static Status check_version(const Parts& map) {
    if (map.version == 3) return {};
    return Error{ErrorCode::kUnsupported,
                 "version " + std::to_string(map.version) + " is not supported; only 3 is"};
  }

  // Reads a map; `outer`: it may be an index map.
  Status map(Parts& to, bool outer) {
    json_.open('{');
    for (std::string_view key; json_.next_key(key);) {
      Status s;
      if (key == "version") {
        to.version = json_.integer();
      } else if (key == "sourceRoot") {
        s = text(to.root);
      } else if (key == "sources") {
        s = sources(to.sources);
      } else if (key == "mappings") {
        to.mappings = json_.plain_text();
      } else if (key == "sections") {
        if (!outer)
          return broken("sections", json_.at(), "there is an index map inside of another");
        to.is_index = true;
        s = sections();
      } else {
        json_.skip();
      }
      if (!s) return s;
    }
    return {};
  }

  Status sections() {
    json_.open('[');
    while (json_.next_item()) {
      const size_t begin = json_.at();
      Parts part;
      uint32_t line = 0, column = 0;
      bool has_map = false;
      json_.open('{');
      for (std::string_view key; json_.next_key(key);) {
        if (key == "offset") {
          offset(line, column);
        } else if (key == "map") {
          if (has_map) return broken("sections", json_.at(), "a section has two maps");
          has_map = true;
          if (Status s = map(part, false); !s) return s;
        } else {
          json_.skip();
        }
      }
      if (json_.bad()) return {};  // run() says so
      if (!has_map) return broken("sections", begin, "a section has no map of its own");
      if (line != 0) {
        return broken("sections", begin, "a module has only one line, and this begins in another");
      }
      if (!made_.rows.empty() && column <= made_.rows.back().address) {
        return broken("sections", begin, "it begins before the end of the section before it");
      }
      if (Status s = add(part, column); !s) return s;
    }
    return {};
  }

  void offset(uint32_t& line, uint32_t& column) {
    json_.open('{');
    for (std::string_view key; json_.next_key(key);) {
      if (key == "line") {
        line = json_.integer();
      } else if (key == "column") {
        column = json_.integer();
      } else {
        json_.skip();
      }
    }
  }

  // Appends a map whose offsets count from `begin`.
  Status add(const Parts& map, uint32_t begin) {
    if (Status s = check_version(map); !s) return s;
    const size_t first = made_.sources.size();
    for (const std::string& source : map.sources) {
      const size_t most = map.root.size() + source.size() + 1;
      const bool fits =
          budget_.take(most) && budget_.push(made_.sources, path_after(map.root, source));
      if (!fits) return dwarf::too_large();
    }
    return MappingsReader(map.mappings, begin, first, made_.sources.size(), made_.rows, budget_)
        .run();
  }

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
  SourceMap made_;
};

}  // namespace

Result<SourceMap> read_source_map(std::string_view json, dwarf::Budget& budget) {
  return Reader(json, budget).run();
}

std::string path_after(std::string_view folder, std::string_view path) {
  std::string whole;
  whole.reserve(folder.size() + path.size() + 1);
  for (std::string_view part : {folder, path}) {
    if (part.starts_with('/')) whole.clear();
    if (!whole.empty() && !part.empty() && whole.back() != '/') whole += '/';
    whole += part.starts_with("./") ? part.substr(2) : part;
  }
  return whole;
}

}  // namespace uptier::source_map
