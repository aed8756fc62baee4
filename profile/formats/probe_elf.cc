#include "profile/formats/probe_elf.h"

#include <elf.h>

#include <algorithm>

#include "profile/formats/probe_sections.h"

namespace uptier::profile {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kWidestGap = 64 << 10;  // between parts of one section
constexpr char kFill = '\xcc';             // int3
constexpr size_t kMostTexts = 30000;       // sections of code; ELF counts sections with 16 bits

struct Text {
  uint64_t address = 0;
  std::string bytes;

  uint64_t end() const { return address + bytes.size(); }
};

struct Symbol {
  std::string name;
  uint64_t address = 0;
  uint64_t size = 0;
};

template <class T>
void put(std::string& out, const T& what) {
  out.append(reinterpret_cast<const char*>(&what), sizeof what);
}

class ElfWriter {
 public:
  explicit ElfWriter(const ProbedFile& file) {
    for (const ProbedCode& code : file.codes) {
      const std::string& name = file.functions[code.bodies[0].function].name;
      for (const ProbedPart& part : code.parts) {
        symbols_.push_back({name, part.address, part.bytes.size()});
        parts_.push_back(&part);
      }
    }
    std::ranges::sort(symbols_, {}, &Symbol::address);
    std::ranges::sort(parts_, {}, &ProbedPart::address);
    for (const ProbedPart* part : parts_) add(*part);
  }

  std::string run(const ProbedFile& file) {
    out_.assign(sizeof(Elf64_Ehdr) + texts_.size() * sizeof(Elf64_Phdr), '\0');
    add_section({});  // the null section
    put_texts();
    put_symbols();
    put_surroundings();
    put_section(".pseudo_probe", SHT_PROGBITS, probe_section(file));
    put_section(".pseudo_probe_desc", SHT_PROGBITS, probe_desc_section(file));
    put_names();
    put_headers();
    return std::move(out_);
  }

 private:
  void add(const ProbedPart& part) {
    const bool joins = !texts_.empty() && (part.address - texts_.back().end() <= kWidestGap ||
                                           texts_.size() == kMostTexts);
    if (!joins) texts_.push_back({part.address, {}});
    Text& to = texts_.back();
    to.bytes.resize(part.address - to.address, kFill);
    to.bytes.append(reinterpret_cast<const char*>(part.bytes.data()), part.bytes.size());
  }

  uint32_t name_of(const std::string& name) {
    const auto at = static_cast<uint32_t>(names_.size());
    names_ += name;
    names_ += '\0';
    return at;
  }
  void add_section(const Elf64_Shdr& section) { sections_.push_back(section); }

  Elf64_Shdr& put_section(const std::string& name, uint32_t type, const std::string& bytes) {
    out_.resize((out_.size() + 7) & ~size_t{7}, '\0');
    Elf64_Shdr s{};
    s.sh_name = name_of(name);
    s.sh_type = type;
    s.sh_offset = out_.size();
    s.sh_size = bytes.size();
    s.sh_addralign = 1;
    out_ += bytes;
    add_section(s);
    return sections_.back();
  }

  // The loader requires that the place in the file equals the address in its low 12 bits.
  void put_texts() {
    for (size_t n = 0; n < texts_.size(); ++n) {
      const Text& text = texts_[n];
      while (out_.size() % kPage != text.address % kPage) out_ += '\0';
      Elf64_Shdr s{};
      s.sh_name = name_of(n == 0 ? ".text" : ".text." + std::to_string(n));
      s.sh_type = SHT_PROGBITS;
      s.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
      s.sh_addr = text.address;
      s.sh_offset = out_.size();
      s.sh_size = text.bytes.size();
      s.sh_addralign = 1;
      out_ += text.bytes;
      add_section(s);
    }
  }

  // Tells readers that there is something where the code's calls and jumps may lead: llvm-bolt crashes
  // where they lead nowhere. A call reaches 2 GB.
  void put_surroundings() {
    constexpr uint64_t kReach = uint64_t{1} << 31;
    if (texts_.empty()) return;
    uint64_t from = texts_[0].address - std::min(texts_[0].address, kReach);
    const uint32_t name = name_of(".elsewhere");
    for (size_t n = 0; n <= texts_.size(); ++n) {
      const uint64_t to = n == texts_.size() ? from + kReach : texts_[n].address;
      Elf64_Shdr s{};
      s.sh_name = name;
      s.sh_type = SHT_NOBITS;
      s.sh_flags = SHF_ALLOC;
      s.sh_addr = from;
      s.sh_offset = out_.size();
      s.sh_size = to - from;
      s.sh_addralign = 1;
      if (s.sh_size != 0) add_section(s);
      if (n < texts_.size()) from = texts_[n].end();
    }
  }

  // Returns the number of the section that an address lies in.
  uint16_t section_of(uint64_t address) const {
    const auto after = std::ranges::upper_bound(texts_, address, {}, &Text::address);
    return static_cast<uint16_t>(after - texts_.begin());
  }

  void put_symbols() {
    std::string table(sizeof(Elf64_Sym), '\0');
    std::string names("\0code.elf", 10);  // with its end
    Elf64_Sym file{};                     // llvm-bolt wants to know where local symbols come from
    file.st_name = 1;
    file.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FILE);
    file.st_shndx = SHN_ABS;
    put(table, file);
    for (const Symbol& symbol : symbols_) {
      Elf64_Sym s{};
      s.st_name = static_cast<uint32_t>(names.size());
      s.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
      s.st_shndx = section_of(symbol.address);
      s.st_value = symbol.address;
      s.st_size = symbol.size;
      names += symbol.name;
      names += '\0';
      put(table, s);
    }
    Elf64_Shdr& s = put_section(".symtab", SHT_SYMTAB, table);
    s.sh_entsize = sizeof(Elf64_Sym);
    s.sh_addralign = 8;
    s.sh_link = static_cast<uint32_t>(sections_.size());     // the names, which follow
    s.sh_info = static_cast<uint32_t>(symbols_.size()) + 2;  // all are local
    put_section(".strtab", SHT_STRTAB, names);
  }

  void put_names() {
    const uint32_t name = name_of(".shstrtab");
    const std::string names = names_;
    put_section("", SHT_STRTAB, names).sh_name = name;
  }

  void put_headers() {
    Elf64_Ehdr h{};
    std::copy_n(ELFMAG, SELFMAG, h.e_ident);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_ident[EI_DATA] = ELFDATA2LSB;
    h.e_ident[EI_VERSION] = EV_CURRENT;
    h.e_type = ET_EXEC;
    h.e_machine = EM_X86_64;
    h.e_version = EV_CURRENT;
    h.e_entry = texts_.empty() ? 0 : texts_[0].address;
    h.e_phoff = sizeof(Elf64_Ehdr);
    h.e_ehsize = sizeof(Elf64_Ehdr);
    h.e_phentsize = sizeof(Elf64_Phdr);
    h.e_phnum = static_cast<uint16_t>(texts_.size());
    h.e_shentsize = sizeof(Elf64_Shdr);
    h.e_shnum = static_cast<uint16_t>(sections_.size());
    h.e_shstrndx = static_cast<uint16_t>(sections_.size() - 1);
    out_.resize((out_.size() + 7) & ~size_t{7}, '\0');
    h.e_shoff = out_.size();
    std::string front;
    put(front, h);
    for (size_t n = 0; n < texts_.size(); ++n) {
      const Elf64_Shdr& s = sections_[n + 1];
      put(front, Elf64_Phdr{PT_LOAD, PF_R | PF_X, s.sh_offset, s.sh_addr, s.sh_addr, s.sh_size,
                            s.sh_size, kPage});
    }
    out_.replace(0, front.size(), front);
    for (const Elf64_Shdr& s : sections_) put(out_, s);
  }

  std::vector<const ProbedPart*> parts_;
  std::vector<Symbol> symbols_;
  std::vector<Text> texts_;  // by rising address
  std::vector<Elf64_Shdr> sections_;
  std::string names_ = std::string(1, '\0');  // of sections
  std::string out_;
};

}  // namespace

std::string to_probe_elf(const ProbedFile& file) { return ElfWriter(file).run(file); }

}  // namespace uptier::profile
