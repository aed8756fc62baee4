#include "jit/code/gdb_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace uptier::jit {
namespace {

uint64_t address(const uint8_t* p) { return reinterpret_cast<uintptr_t>(p); }

class Bytes {
 public:
  template <class T>
  void put(const T& value) {
    const auto* p = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), p, p + sizeof value);
  }
  void put(std::initializer_list<uint8_t> list) { bytes_.insert(bytes_.end(), list); }
  void text(std::string_view s) {
    bytes_.insert(bytes_.end(), s.begin(), s.end());
    bytes_.push_back(0);
  }
  void uleb(uint64_t n) {
    for (; n >= 0x80; n >>= 7) bytes_.push_back(static_cast<uint8_t>(n | 0x80));
    bytes_.push_back(static_cast<uint8_t>(n));
  }
  void align(size_t to, uint8_t with) {
    while (bytes_.size() % to != 0) bytes_.push_back(with);
  }
  void patch32(size_t at, uint32_t value) { std::memcpy(&bytes_[at], &value, sizeof value); }
  size_t size() const { return bytes_.size(); }
  const std::vector<uint8_t>& all() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

// ---- Call frame information (DWARF 5, section 6.4; registers by the psABI's numbers) -----------

constexpr uint8_t kRbp = 6, kRsp = 7, kReturnAddress = 16;
constexpr uint8_t kNop = 0x00, kDefCfa = 0x0c, kDefCfaRegister = 0x0d, kDefCfaOffset = 0x0e;
constexpr uint8_t kAdvance = 0x40, kOffset = 0x80;  // the low six bits are the operand
constexpr uint8_t kAlignment = 8;                   // saved registers lie at multiples of it

void begin_entry(Bytes& out, size_t& begin) {
  begin = out.size();
  out.put<uint32_t>(0);  // the length that follows
}

void end_entry(Bytes& out, size_t begin) {
  out.align(8, kNop);
  out.patch32(begin, static_cast<uint32_t>(out.size() - begin - 4));
}

void put_cie(Bytes& out) {
  size_t begin;
  begin_entry(out, begin);
  out.put<uint32_t>(0);  // it is a CIE
  out.put({1, 0});       // version, no augmentation
  out.uleb(1);           // offsets of code count bytes
  out.put({0x78});       // those of data -8
  out.uleb(kReturnAddress);
  out.put({kDefCfa, kRsp, 8, kOffset | kReturnAddress, 1});
  end_entry(out, begin);
}

void put_fde(Bytes& out, const NamedCode& code) {
  constexpr uint8_t kPush = 1, kMove = 3;  // bytes of push rbp, of mov rbp, rsp
  size_t begin;
  begin_entry(out, begin);
  out.put(static_cast<uint32_t>(out.size()));  // back to the CIE, which stands first
  out.put(address(code.base));
  out.put<uint64_t>(code.size);
  if (code.at_loop) {
    out.put({kDefCfa, kRbp, 16, kOffset | kRbp, 2});
  } else {
    out.put({kAdvance | kPush, kDefCfaOffset, 16, kOffset | kRbp, 2});
    out.put({kAdvance | kMove, kDefCfaRegister, kRbp});
  }
  for (size_t n = 0; n < code.saved.size(); ++n) {
    const int64_t below_cfa = 16 - code.saved_at + static_cast<int64_t>(8 * n);
    out.put({static_cast<uint8_t>(kOffset | code.saved[n])});
    out.uleb(static_cast<uint64_t>(below_cfa) / kAlignment);
  }
  end_entry(out, begin);
}

// ---- The file ---------------------------------------------------------------------------------

enum Section : uint16_t { kNone, kText, kFrames, kSymbols, kStrings, kNames, kSections };

struct Parts {
  Bytes frames, symbols, strings, names;
  uint64_t begin = UINT64_MAX, end = 0;
};

void put_symbol(Parts& p, const NamedCode& code) {
  Elf64_Sym s = {};
  s.st_name = static_cast<uint32_t>(p.strings.size());
  s.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  s.st_shndx = kText;
  s.st_value = address(code.base) - p.begin;  // of its section, in a relocatable file
  s.st_size = code.size;
  p.symbols.put(s);
  p.strings.text(code.name);
}

Parts describe(std::span<const NamedCode> codes) {
  Parts p;
  for (const NamedCode& c : codes) {
    p.begin = std::min(p.begin, address(c.base));
    p.end = std::max(p.end, address(c.base) + c.size);
  }
  put_cie(p.frames);
  p.symbols.put(Elf64_Sym{});
  p.strings.text("");
  for (const NamedCode& c : codes) {
    put_fde(p.frames, c);
    put_symbol(p, c);
  }
  p.frames.put<uint32_t>(0);  // no more entries
  return p;
}

}  // namespace

std::vector<uint8_t> gdb_image(std::span<const NamedCode> codes) {
  Parts p = describe(codes);
  Elf64_Shdr headers[kSections] = {};
  p.names.text("");
  Bytes body;
  const auto section = [&](Section n, const char* name, uint32_t type, const Bytes* bytes) {
    body.align(8, 0);
    headers[n].sh_name = static_cast<uint32_t>(p.names.size());
    p.names.text(name);
    headers[n].sh_type = type;
    headers[n].sh_addralign = 8;
    headers[n].sh_offset = sizeof(Elf64_Ehdr) + sizeof headers + body.size();
    if (bytes == nullptr) return;
    headers[n].sh_size = bytes->size();
    for (uint8_t b : bytes->all()) body.put(b);
  };
  section(kText, ".text", SHT_NOBITS, nullptr);
  headers[kText].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  headers[kText].sh_addr = p.begin;
  headers[kText].sh_size = p.end - p.begin;
  section(kFrames, ".eh_frame", SHT_PROGBITS, &p.frames);
  headers[kFrames].sh_flags = SHF_ALLOC;
  section(kSymbols, ".symtab", SHT_SYMTAB, &p.symbols);
  headers[kSymbols].sh_link = kStrings;
  headers[kSymbols].sh_info = 1;  // the first that is not local
  headers[kSymbols].sh_entsize = sizeof(Elf64_Sym);
  section(kStrings, ".strtab", SHT_STRTAB, &p.strings);
  // Its own name has to be in it.
  Bytes names = p.names;
  names.text(".shstrtab");
  section(kNames, ".shstrtab", SHT_STRTAB, &names);

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
  file.e_shnum = kSections;
  file.e_shstrndx = kNames;
  Bytes out;
  out.put(file);
  out.put(headers);
  for (uint8_t b : body.all()) out.put(b);
  return out.all();
}

}  // namespace uptier::jit
