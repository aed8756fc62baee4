#include "embed/dwarf/line_header.h"

#include <utility>

namespace uptier::dwarf {
namespace {

constexpr const char* kLine = ".debug_line";

// The fields of an entry in a list of files, from version 5 on.
enum Content : uint64_t { kPath = 1, kDirectoryIndex = 2 };

// The lists of folders and files up to version 4: folder 0 is the unit's, and file 0 does not exist.
Status read_old_lists(Cursor& c, LineHeader& h, Budget& budget) {
  std::vector<std::string_view> folders{""};
  for (;;) {
    const std::string_view folder = c.text();
    if (folder.empty()) break;
    if (!budget.step() || !budget.push(folders, folder)) return too_large();
  }
  for (;;) {
    const std::string_view name = c.text();
    if (name.empty()) return {};
    const uint64_t folder = c.uleb();
    c.uleb();  // time
    c.uleb();  // size
    const LineHeader::File file{folder < folders.size() ? folders[folder] : "", name};
    if (!budget.step() || !budget.push(h.files, file)) return too_large();
  }
}

struct EntryFormat {
  uint64_t content = 0;
  uint32_t form = 0;
};

struct Listed {
  std::string_view path;
  uint64_t folder = 0;
};

// One list from version 5 on: formats, then entries.
Status read_list(Cursor& c, const LineHeader& h, const Sections& s, std::vector<Listed>& out,
                 Budget& budget) {
  std::vector<EntryFormat> formats;
  for (unsigned left = c.u8(); left > 0; --left) {
    const uint64_t content = c.uleb();
    formats.push_back({content, static_cast<uint32_t>(c.uleb())});
  }
  Unit unit;
  unit.encoding = h.encoding;
  for (uint64_t left = c.uleb(); left > 0 && !c.bad(); --left) {
    Listed e;
    for (const EntryFormat& f : formats) {
      const Value v = read_value(c, f.form, 0, h.encoding, 0);
      if (f.content == kPath) e.path = text_of(v, unit, s);
      if (f.content == kDirectoryIndex) e.folder = v.number;
    }
    if (!budget.step(1 + formats.size()) || !budget.push(out, e)) return too_large();
  }
  return {};
}

Status read_new_lists(Cursor& c, LineHeader& h, const Sections& s, Budget& budget) {
  std::vector<Listed> folders, files;
  if (Status r = read_list(c, h, s, folders, budget); !r) return r;
  if (Status r = read_list(c, h, s, files, budget); !r) return r;
  for (const Listed& e : files) {
    const bool has_folder = e.folder < folders.size();
    // Folder 0 is the unit's own.
    const LineHeader::File file{has_folder ? folders[e.folder].path : "", e.path, e.folder != 0};
    if (!budget.push(h.files, file)) return too_large();
  }
  h.from_zero = true;
  return {};
}

Error bad_at(const LineHeader& h, std::string_view rule) { return broken(kLine, h.at, rule); }

}  // namespace

Result<LineHeader> read_line_header(const Sections& s, uint64_t at, Budget& budget) {
  Cursor c(s.line, at);
  LineHeader h;
  h.at = at;
  h.end = read_length(c, h.encoding.offset_size);
  if (c.bad()) return bad_at(h, "the length of a line program goes past the end of the section");
  h.encoding.version = c.u16();
  if (h.encoding.version < 2 || h.encoding.version > 5) {
    return Error{ErrorCode::kUnsupported, bad_at(h, "line tables of version ").message +
                                              std::to_string(h.encoding.version) +
                                              " are not known; use -gdwarf-4 or -gdwarf-5"};
  }
  if (h.encoding.version >= 5) {
    h.encoding.address_size = c.u8();
    c.u8();  // size of segment selectors
    if (h.encoding.address_size != 4 && h.encoding.address_size != 8) {
      return bad_at(h, "addresses of a line program have neither 4 nor 8 bytes");
    }
  }
  const uint64_t length = c.number(h.encoding.offset_size);
  if (c.at() > h.end || length > h.end - c.at()) {
    return bad_at(h, "the header of a line program goes past the program's end");
  }
  h.program = c.at() + length;
  c = Cursor(s.line, c.at(), h.program);
  h.min_length = c.u8();
  const uint8_t operations = h.encoding.version >= 4 ? c.u8() : 1;
  h.default_is_stmt = c.u8() != 0;
  h.line_base = static_cast<int8_t>(c.u8());
  h.line_range = c.u8();
  h.opcode_base = c.u8();
  for (unsigned i = 1; i < h.opcode_base; ++i) h.operands[i] = c.u8();
  if (c.bad()) return bad_at(h, "a line program is shorter than its header");
  if (operations != 1)
    return bad_at(h, "instructions of several operations (VLIW) are not supported");
  if (h.line_range == 0 || h.opcode_base == 0) {
    return bad_at(h, "the line range or the opcode base of a line program is 0");
  }
  Status lists =
      h.encoding.version >= 5 ? read_new_lists(c, h, s, budget) : read_old_lists(c, h, budget);
  if (!lists) return lists.error();
  if (c.bad()) return bad_at(h, "the lists of folders and files go past the end of their header");
  return h;
}

}  // namespace uptier::dwarf
