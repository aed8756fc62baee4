// body_graph.h: the functions of a file as graphs of blocks, and what a profile says of them.
//
// A profile has counts of sites; where they lie in the code only the code knows. Blocks are
// numbered as block sites are, from 1; edges as edge sites.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profile/algebra/fold_inlined.h"
#include "tools/compile_world.h"
#include "uptier/profile.h"

namespace uptier::tools {

struct BodyGraph {
  struct Edge {
    uint32_t from = 0;
    uint32_t to = 0;
  };
  struct Block {
    uint32_t location = 0;    // of its first instruction that has one
    uint32_t first_edge = 0;  // in `edges`
    uint32_t edge_count = 0;
    uint32_t entered_by = 0;  // how many edges lead here
    bool is_branch = false;   // ends in a branch; its first edge is taken when ...
    bool inverted = false;    // ... the condition is not 0, or when it is
    uint32_t branch_location = 0;
    uint32_t covered_by = 0;  // where Module::covered says that it ran, if `covers`; else 0
  };
  struct Call {
    uint32_t block = 0;
    uint32_t location = 0;
    SiteId site = 0;
    std::optional<uint32_t> callee;  // index of a function of the file; none: indirect, or a host's
  };
  struct Loop {
    uint32_t block = 0;
    uint32_t location = 0;
  };

  std::string name;
  std::optional<MethodKey> key;  // none for IR text, whose methods are known by name
  uint64_t cfg_hash = 0;
  std::vector<Block> blocks;  // by site - 1
  std::vector<Edge> edges;    // by site - 1
  std::vector<Call> calls;
  std::vector<Loop> loops;
};

std::vector<BodyGraph> body_graphs(const Functions& functions);

// Reads a WebAssembly module or IR text. Errors: as read_functions, and a file that is not there.
Result<std::vector<BodyGraph>> read_body_graphs(const std::string& file);

// Returns the profile of a body: the one with its key, otherwise the only one with its name and hash
// (from another module with the same code). Null if there is none, or only one of other code.
const MethodProfile* profile_of(const Profile& profile, const BodyGraph& body);

// Returns all executions of a method, those of its inlined bodies too; null as profile_of. `folded` is
// of the profile.
const MethodProfile* whole_profile_of(const profile::FoldedMethods& folded, const Profile& profile,
                                      const BodyGraph& body);

// A count as it was observed, and what it stands for.
struct Counted {
  uint64_t count = 0;
  uint64_t estimate = 0;
};

// Returns how often a block ran; nothing where it was not observed.
std::optional<Counted> block_count(const MethodProfile& m, uint32_t block);

// Returns how often an edge was taken: from its own slot, or from the count of a block
// that can be reached only by this edge. Nothing if both are missing.
std::optional<Counted> edge_count(const MethodProfile& m, const BodyGraph& body, uint32_t edge);

}  // namespace uptier::tools
