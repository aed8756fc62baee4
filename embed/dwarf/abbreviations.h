// Abbreviations: which attributes the entries of a unit have, and in which forms.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "embed/dwarf/budget.h"
#include "embed/dwarf/debug_sections.h"

namespace uptier::dwarf {

struct AttributeForm {
  uint32_t name = 0;
  uint32_t form = 0;
  int64_t implicit = 0;  // of kFormImplicitConst
};

class Abbreviations {
 public:
  struct Entry {
    uint64_t code = 0;
    uint32_t tag = 0;
    bool has_children = false;
    uint32_t first = 0;
    uint32_t count = 0;
  };

  // Reads the table at an offset of .debug_abbrev. Errors: kCorruptInput; kResourceExhausted.
  static Result<Abbreviations> read(const Sections& s, uint64_t at, Budget& budget);

  // Returns the entry with this code, or null.
  const Entry* find(uint64_t code) const;
  std::span<const AttributeForm> forms(const Entry& e) const {
    return std::span(forms_).subspan(e.first, e.count);
  }

 private:
  std::vector<Entry> entries_;  // by code, ascending
  std::vector<AttributeForm> forms_;
};

}  // namespace uptier::dwarf
