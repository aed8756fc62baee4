// Verifier: shared by verify.cc (structure, control), verify_inst.cc (one instruction) and
// verify_built.cc.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "jit/frontend/verify.h"
#include "jit/ir/print.h"

namespace uptier::jit {

class Verifier {
 public:
  Verifier(const Function& f, Stage stage, size_t limit) : f_(f), stage_(stage), limit_(limit) {}

  std::vector<std::string> run();
  // Returns whether a function from a builder has no problem (verify_built.cc). Instead of run().
  bool host_did_right();

 private:
  // Structure.
  void check_tables();
  void check_layout();
  void check_block_lists(Block b);
  void check_inst_lists(Block b, InstId id, bool last);
  void check_edges(Block b, const Inst& i);
  void define_params(Block b);
  void define_result(Block b, InstId id);
  bool list_fits(ValueList l) const;
  bool values_fit(ValueList l) const;

  // Types (verify_inst.cc).
  void check_inst(Block b, const Inst& i);
  void check_inst_slow(Block b, const Inst& i);
  bool has_known_type(const Inst& i) const;
  bool is_plain(const Inst& i) const;
  bool is_plain_access(const Inst& i, Shape shape) const;
  bool is_plain_branch(const Inst& i, Shape shape) const;
  bool edges_fit(const Inst& i) const;
  bool fits(const Edge& e) const;
  void check_shape_operands(Block b, const Inst& i);
  void check_address(Block b, const Inst& i, size_t first);
  void check_guard(Block b, const Inst& i);
  void check_probe(Block b, const Inst& i);
  void check_call(Block b, const Inst& i);
  void check_call_args(Block b, const Inst& i, size_t first);
  void check_immediates(Block b, const Inst& i);
  void check_flags(Block b, const Inst& i);
  void check_sites(Block b, const Inst& i);
  void check_known_count(Block b, const Inst& i, uint32_t count);
  void check_edge_args(Block b, const Inst& i);
  void want(Block b, const Inst& i, std::initializer_list<Type> types);
  bool want_count(Block b, const Inst& i, size_t low, size_t high);
  void want_type(Block b, const Inst& i, size_t operand, uint8_t mask);

  bool is_filled(Block b) const;

  // Control and observation.
  void check_entry();
  void check_dominance();
  void check_observation(Block b);
  void check_guards(Block b);
  bool numbers_fit() const;
  void check_numbers();

  bool full() const { return problems_.size() >= limit_; }
  void report(const std::string& rule);
  void report(Block b, const std::string& rule);
  void report(Block b, const Inst& i, const std::string& rule);

  // Names values and blocks in reports; created for the first report.
  const Printer& printer();

  const Function& f_;
  Stage stage_;
  size_t limit_;
  std::optional<Printer> printer_;
  std::vector<std::string> problems_;
  bool has_guards_ = false;
  std::vector<uint8_t> placed_;    // by instruction: 1 if it was seen
  std::vector<uint8_t> laid_out_;  // by block
  std::vector<uint8_t> defined_;   // by value
  std::vector<bool> counters_;     // by site, once needed
};

}  // namespace uptier::jit
