// Scopes: finds the function that an address belongs to, and the calls that were inlined there.
//
// A scope is a subprogram with code, or an inlined call; its parent is the scope that it was inlined into.
// At each address the innermost scope counts. Scopes of functions that the linker removed have no code.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "embed/dwarf/budget.h"
#include "embed/dwarf/line_program.h"

namespace uptier::dwarf {

constexpr uint32_t kNoScope = UINT32_MAX;

struct Scope {
  uint32_t parent = kNoScope;
  uint64_t function = 0;  // its entry, by place in .debug_info
  // The call that was inlined.
  uint32_t call_file = kNoFile;
  uint32_t call_line = 0;
  uint16_t call_column = 0;
  uint32_t call_discriminator = 0;
};

struct ScopeRange {
  uint32_t begin = 0, end = 0;
  uint32_t scope = 0;
  uint32_t depth = 0;  // of the scope among inlined calls
};

// The entry of a subprogram. What it lacks, the entry of its origin may have.
struct Subprogram {
  uint64_t at = 0;
  std::string_view name;
  std::string_view linkage_name;
  uint64_t origin = 0;  // 0: none
  uint32_t line = 0;    // where it is declared; 0: not known
};

class Scopes {
 public:
  // The reader appends to these.
  std::vector<Scope> scopes;
  std::vector<ScopeRange> ranges;
  std::vector<Subprogram> subprograms;  // ascending

  // Orders the ranges. Nothing is found before. Errors: kResourceExhausted.
  Status finish(Budget& budget);
  // Returns the innermost scope at an address, kNoScope if it is in none.
  uint32_t find(uint32_t address) const;
  // Returns the name of a scope's function, "" if it has none.
  std::string_view name_of(const Scope& scope) const;
  // Returns the name that linkers know, or the name if there is no other.
  std::string_view linkage_name_of(const Scope& scope) const;
  // Returns the line of the function's declaration, 0 if it is not known.
  uint32_t line_of(const Scope& scope) const;

 private:
  // Returns the first of the function's entries for which `has` is true, or null.
  template <typename Has>
  const Subprogram* first_entry(const Scope& scope, Has has) const;

  struct Piece {
    uint32_t begin = 0;
    uint32_t scope = kNoScope;
  };
  std::vector<Piece> pieces_;  // by begin; each ends where the next one begins
};

}  // namespace uptier::dwarf
