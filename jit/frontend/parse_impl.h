// TokenReader, FunctionParser: shared by parse.cc (modules, blocks) and parse_inst.cc
// (instructions).
//
// Parsing functions return false after an error; the first message is kept.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "jit/frontend/lex.h"
#include "jit/frontend/parse.h"

namespace uptier::jit {

struct FunctionHeader {
  std::string name;
  Signature signature;
  bool numbered = false;  // the bracket is there
  uint32_t block_sites = 0;
  uint32_t other_sites = 0;
  uint32_t loops = 0;
  uint64_t cfg_hash = 0;
  std::vector<InlinedBody> inlined;
};

struct ModuleHeaders {
  std::vector<FunctionHeader> functions;
  std::unordered_map<std::string, uint32_t> by_name;
};

// Reads tokens one after the other.
class TokenReader {
 public:
  TokenReader(const std::vector<Token>& tokens, std::string_view file)
      : tokens_(tokens), file_(file) {}

  const Token& peek(size_t ahead = 0) const {
    return tokens_[at_ + ahead < tokens_.size() ? at_ + ahead : tokens_.size() - 1];
  }
  Token take() {
    Token t = peek();
    if (at_ + 1 < tokens_.size()) ++at_;
    return t;
  }
  bool at_end() const { return peek().kind == Token::Kind::kEnd; }
  void rewind() { at_ = 0; }

  // Takes the token if it is this character (or "->").
  bool accept(std::string_view punct);
  bool accept_word(std::string_view word);
  void skip_newlines();

  bool expect(std::string_view punct);
  bool expect_word(std::string_view word);
  bool expect_newline();
  bool expect_type(Type& out);
  // Reads "(i32, f64)".
  bool expect_types(std::vector<Type>& out);
  bool expect_signature(Signature& out);
  bool expect_u32(uint32_t& out);
  bool expect_u64(uint64_t& out);
  bool expect_name(std::string& out);
  // Takes "@17" if it is there; fails if it is too large.
  bool accept_location(uint32_t& out);

  bool fail(const Token& where, std::string rule);
  bool fail(std::string rule) { return fail(peek(), std::move(rule)); }
  Error error() const { return {ErrorCode::kInvalidInput, message_}; }

 private:
  const std::vector<Token>& tokens_;
  size_t at_ = 0;
  std::string file_;
  std::string message_;
};

// Parses one function, from its `func` to its `}`.
class FunctionParser {
 public:
  FunctionParser(TokenReader& in, const ModuleHeaders& headers, uint32_t index,
                 const ParseOptions& options)
      : in_(in), headers_(headers), header_(headers.functions[index]), options_(options) {}

  bool parse();
  Function take() { return std::move(f_); }

 private:
  // A value or block that was mentioned, and its first mention.
  template <typename T>
  struct Mention {
    T id;
    Token where;
    bool defined = false;
  };

  bool block();
  bool block_params(Block b);
  bool finish();

  bool instruction();
  bool operands(Inst& i);
  bool suffixes(Inst& i);
  bool append(Inst i, const Token* result);
  bool constant(Inst& i);
  bool access_flags(Inst& i);
  bool memory(Inst& i);
  bool bulk(Inst& i);
  bool frame_memory(Inst& i);
  bool address(Inst& i, std::vector<Value>& args);
  bool call(Inst& i);
  bool call_indirect(Inst& i);
  bool call_host(Inst& i);
  bool probe(Inst& i);
  bool turns(Inst& i);
  bool header_or_state(Inst& i);
  bool terminator(Inst& i);
  bool condition_and_code(Inst& i);
  bool edge();
  bool edges(Inst& i);
  bool trap_code(Inst& i);
  bool argument_list(std::vector<Value>& out);  // "(v1, v2)"
  bool slots(Inst& i);                          // "[v1, v2]", or nothing
  bool plain_values(std::vector<Value>& out);   // "v1, v2" up to the end of the line, or nothing
  bool field(std::string_view name, uint64_t& out);

  bool value(Value& out);
  bool define(const Token& t, Type type, Value& out);
  Mention<Value>* mention_value(const Token& t);
  Mention<Block>* mention_block(const Token& t);
  uint32_t callee_index(MethodId method, const std::string& name, SignatureId signature);
  uint32_t host_index(const std::string& name, SignatureId signature);

  TokenReader& in_;
  const ModuleHeaders& headers_;
  const FunctionHeader& header_;
  const ParseOptions& options_;
  Function f_;
  Block current_;
  std::unordered_map<uint32_t, Mention<Value>> values_;
  std::unordered_map<uint32_t, Mention<Block>> blocks_;
};

}  // namespace uptier::jit
