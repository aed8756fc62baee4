#include "jit/symbols/gdb_image.h"

#include <elf.h>

#include <cstring>

#include "jit/symbols/gdb_lines.h"
#include "jit/symbols/object_bytes.h"

namespace uptier::jit {
namespace {

uint64_t address(const uint8_t* p) { return reinterpret_cast<uintptr_t>(p); }

using Bytes = ObjectBytes;

// ---- Call frame information (DWARF 5, section 6.4; register numbers of the psABI) -----------

constexpr uint8_t kRbp = 6, kRsp = 7, kReturnAddress = 16;
constexpr uint8_t kNop = 0x00, kDefCfa = 0x0c, kDefCfaRegister = 0x0d, kDefCfaOffset = 0x0e;
constexpr uint8_t kAdvance = 0x40, kOffset = 0x80, kRestore = 0xc0;  // operand: the low six bits
constexpr uint8_t kAdvance4 = 0x04;                                  // operand: four bytes
constexpr uint8_t kAlignment = 8;  // saved registers lie at multiples of it

void begin_entry(Bytes& out, size_t& begin) {
  begin = out.size();
  out.put<uint32_t>(0);  // the length, filled in later
}

void end_entry(Bytes& out, size_t begin) {
  out.align(8, kNop);
  out.patch32(begin, static_cast<uint32_t>(out.size() - begin - 4));
}

void put_cie(Bytes& out) {
  size_t begin;
  begin_entry(out, begin);
  out.put<uint32_t>(0);  // marks a CIE
  out.put({1, 0});       // version, no augmentation
  out.uleb(1);           // code offsets count bytes
  out.put({0x78});       // data offsets are multiples of -8
  out.uleb(kReturnAddress);
  out.put({kDefCfa, kRsp, 8, kOffset | kReturnAddress, 1});
  end_entry(out, begin);
}

void put_saved(Bytes& out, const NamedCode& code, size_t n) {
  const int64_t below_cfa = 16 - code.saved_at + static_cast<int64_t>(8 * n);
  out.put({static_cast<uint8_t>(kOffset | code.saved[n])});
  out.uleb(static_cast<uint64_t>(below_cfa) / kAlignment);
}

// Describes the usual frame, from the beginning or from the point where the prologue has made it.
void put_usual_frame(Bytes& out, const NamedCode& code) {
  constexpr uint8_t kPush = 1, kMove = 3;  // bytes of push rbp, of mov rbp, rsp
  if (code.at_loop) {
    out.put({kDefCfa, kRbp, 16, kOffset | kRbp, 2});
  } else {
    out.put({kAdvance | kPush, kDefCfaOffset, 16, kOffset | kRbp, 2});
    out.put({kAdvance | kMove, kDefCfaRegister, kRbp});
  }
  for (size_t n = 0; n < code.saved.size(); ++n) put_saved(out, code, n);
}

void put_advance(Bytes& out, uint32_t by) {
  if (by < kAdvance) {
    if (by != 0) out.put({static_cast<uint8_t>(kAdvance | by)});
    return;
  }
  out.put({kAdvance4});
  out.put(by);
}

void put_frame_rows(Bytes& out, const NamedCode& code) {
  using Kind = FrameState::Kind;
  FrameState now;  // as the CIE says
  uint32_t at = 0;
  for (const FrameRow& row : code.frames) {
    put_advance(out, row.offset - at);
    at = row.offset;
    bool made = row.state.kind == Kind::kMade;
    out.put({kDefCfa, made ? kRbp : kRsp,
             static_cast<uint8_t>(row.state.kind == Kind::kNone ? 8 : 16)});
    if (row.state.kind == Kind::kNone && now.kind != Kind::kNone) out.put({kRestore | kRbp});
    if (row.state.kind != Kind::kNone && now.kind == Kind::kNone) out.put({kOffset | kRbp, 2});
    for (size_t n = row.state.saved; n < now.saved; ++n) {
      out.put({static_cast<uint8_t>(kRestore | code.saved[n])});
    }
    for (size_t n = now.saved; n < row.state.saved; ++n) put_saved(out, code, n);
    now = row.state;
  }
}

void put_fde(Bytes& out, const NamedCode& code) {
  size_t begin;
  begin_entry(out, begin);
  out.put(static_cast<uint32_t>(out.size()));  // back to the CIE, which is first
  out.put(address(code.base));
  out.put<uint64_t>(code.size);
  code.frames.empty() ? put_usual_frame(out, code) : put_frame_rows(out, code);
  end_entry(out, begin);
}

// ---- The file ---------------------------------------------------------------------------------

// A section for each body follows: gdb finds code by its section, and the sections of one file must
// not overlap code that another file names.
enum Section : uint16_t { kNone, kFrames, kSymbols, kStrings, kNames, kFirstBody };

struct Parts {
  Bytes frames, symbols, strings;
};

void put_symbol(Parts& p, const NamedCode& code, uint16_t section) {
  Elf64_Sym s = {};
  s.st_name = static_cast<uint32_t>(p.strings.size());
  s.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  s.st_shndx = section;
  s.st_value = 0;  // relative to its section, in a relocatable file
  s.st_size = code.size;
  p.symbols.put(s);
  p.strings.text(code.name);
}

Parts describe(std::span<const NamedCode> codes) {
  Parts p;
  put_cie(p.frames);
  p.symbols.put(Elf64_Sym{});
  p.strings.text("");
  uint16_t section = kFirstBody;
  for (const NamedCode& c : codes) {
    put_fde(p.frames, c);
    put_symbol(p, c, section++);
  }
  p.frames.put<uint32_t>(0);  // no more entries
  return p;
}

// The file after its header: section headers, then their contents.
class Sections {
 public:
  explicit Sections(size_t count) : headers_(count) { names_.text(""); }

  Elf64_Shdr& add(size_t n, std::string_view name, uint32_t type) {
    headers_[n].sh_name = static_cast<uint32_t>(names_.size());
    headers_[n].sh_type = type;
    headers_[n].sh_addralign = 8;
    names_.text(name);
    return headers_[n];
  }
  Elf64_Shdr& add(size_t n, std::string_view name, uint32_t type, const Bytes& bytes) {
    Elf64_Shdr& h = add(n, name, type);
    place(h, bytes);
    return h;
  }
  // Adds the last section: the names of all sections, including its own.
  void add_names(size_t n) {
    Elf64_Shdr& h = add(n, ".shstrtab", SHT_STRTAB);
    place(h, names_);
  }
  void write(Bytes& out) const {
    for (const Elf64_Shdr& h : headers_) out.put(h);
    for (uint8_t b : body_.all()) out.put(b);
  }

 private:
  void place(Elf64_Shdr& h, const Bytes& bytes) {
    body_.align(8, 0);
    h.sh_offset = sizeof(Elf64_Ehdr) + headers_.size() * sizeof(Elf64_Shdr) + body_.size();
    h.sh_size = bytes.size();
    for (uint8_t b : bytes.all()) body_.put(b);
  }
  std::vector<Elf64_Shdr> headers_;
  Bytes names_, body_;
};

constexpr size_t kLineSections = 4;

void add_lines(Sections& sections, size_t first, const GdbLines& lines) {
  sections.add(first, ".debug_abbrev", SHT_PROGBITS, lines.abbrev);
  sections.add(first + 1, ".debug_info", SHT_PROGBITS, lines.info);
  sections.add(first + 2, ".debug_line", SHT_PROGBITS, lines.line);
  sections.add(first + 3, ".debug_ranges", SHT_PROGBITS, lines.ranges);
}

Elf64_Ehdr file_header(size_t sections) {
  Elf64_Ehdr file = {};
  std::memcpy(file.e_ident, ELFMAG, SELFMAG);
  file.e_ident[EI_CLASS] = ELFCLASS64;
  file.e_ident[EI_DATA] = ELFDATA2LSB;
  file.e_ident[EI_VERSION] = EV_CURRENT;
  file.e_type = ET_REL;
  file.e_machine = EM_X86_64;
  file.e_version = EV_CURRENT;
  file.e_shoff = sizeof file;
  file.e_ehsize = sizeof file;
  file.e_shentsize = sizeof(Elf64_Shdr);
  file.e_shnum = static_cast<uint16_t>(sections);
  file.e_shstrndx = kNames;
  return file;
}

}  // namespace

std::vector<uint8_t> gdb_image(std::span<const NamedCode> codes) {
  const Parts p = describe(codes);
  const GdbLines lines = gdb_lines(codes);
  const size_t first_lines = kFirstBody + codes.size();
  const size_t count = first_lines + (lines.empty() ? 0 : kLineSections);
  Sections sections(count);
  sections.add(kFrames, ".eh_frame", SHT_PROGBITS, p.frames).sh_flags = SHF_ALLOC;
  Elf64_Shdr& symbols = sections.add(kSymbols, ".symtab", SHT_SYMTAB, p.symbols);
  symbols.sh_link = kStrings;
  symbols.sh_info = 1;  // the first symbol that is not local
  symbols.sh_entsize = sizeof(Elf64_Sym);
  sections.add(kStrings, ".strtab", SHT_STRTAB, p.strings);
  for (size_t n = 0; n < codes.size(); ++n) {
    Elf64_Shdr& body = sections.add(kFirstBody + n, ".text", SHT_NOBITS);
    body.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    body.sh_addr = address(codes[n].base);
    body.sh_size = codes[n].size;
    body.sh_addralign = 1;
  }
  if (!lines.empty()) add_lines(sections, first_lines, lines);
  sections.add_names(kNames);
  Bytes out;
  out.put(file_header(count));
  sections.write(out);
  return out.all();
}

}  // namespace uptier::jit
