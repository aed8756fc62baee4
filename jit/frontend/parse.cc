#include "jit/frontend/parse.h"

#include <charconv>

#include "jit/frontend/number_sites.h"
#include "jit/frontend/parse_impl.h"
#include "jit/frontend/verify.h"
#include "jit/ir/names.h"

namespace uptier::jit {
namespace {

using Kind = Token::Kind;

// Returns the name of a token in messages.
std::string quoted(const Token& t) {
  if (t.kind == Kind::kEnd) return "the end of the text";
  if (t.kind == Kind::kNewline) return "the end of the line";
  std::string prefix = t.kind == Kind::kName || t.kind == Kind::kLocation ? "@" : "";
  return "'" + prefix + std::string(t.text) + "'";
}

// Returns n of "v<n>" or "b<n>"; UINT32_MAX if the token is something else.
uint32_t number_after(char letter, const Token& t) {
  if (t.kind != Kind::kWord || t.text.size() < 2 || t.text[0] != letter) return UINT32_MAX;
  uint32_t n = 0;
  auto [end, error] = std::from_chars(t.text.data() + 1, t.text.data() + t.text.size(), n);
  return error == std::errc() && end == t.text.data() + t.text.size() ? n : UINT32_MAX;
}

}  // namespace

// ---- Tokens ---------------------------------------------------------------------------------

bool TokenReader::fail(const Token& where, std::string rule) {
  if (message_.empty()) {
    message_ =
        file_ + ":" + std::to_string(where.line) + ":" + std::to_string(where.column) + ": " + rule;
  }
  return false;
}

bool TokenReader::accept(std::string_view punct) {
  if (!peek().is(Kind::kPunct, punct)) return false;
  take();
  return true;
}

bool TokenReader::accept_word(std::string_view word) {
  if (!peek().is(Kind::kWord, word)) return false;
  take();
  return true;
}

void TokenReader::skip_newlines() {
  while (peek().kind == Kind::kNewline) take();
}

bool TokenReader::expect(std::string_view punct) {
  return accept(punct) || fail("expected '" + std::string(punct) + "', found " + quoted(peek()));
}

bool TokenReader::expect_word(std::string_view word) {
  return accept_word(word) || fail("expected '" + std::string(word) + "', found " + quoted(peek()));
}

bool TokenReader::expect_newline() {
  if (at_end() || peek().is(Kind::kPunct, "}")) return true;
  if (peek().kind != Kind::kNewline) {
    return fail("expected the end of the line, found " + quoted(peek()));
  }
  skip_newlines();
  return true;
}

bool TokenReader::expect_type(Type& out) {
  auto t = peek().kind == Kind::kWord ? type_of_name(peek().text) : std::nullopt;
  if (!t) return fail("expected a type, found " + quoted(peek()));
  out = *t;
  take();
  return true;
}

bool TokenReader::expect_types(std::vector<Type>& out) {
  if (!expect("(")) return false;
  if (accept(")")) return true;
  do {
    Type t;
    if (!expect_type(t)) return false;
    out.push_back(t);
  } while (accept(","));
  return expect(")");
}

bool TokenReader::expect_signature(Signature& out) {
  return expect_types(out.params) && (!accept("->") || expect_type(out.result));
}

bool TokenReader::expect_u64(uint64_t& out) {
  bool digits = peek().kind == Kind::kNumber && peek().text[0] != '-';
  auto v = digits ? parse_constant(Type::kI64, peek().text) : std::nullopt;
  if (!v) return fail("expected a number, found " + quoted(peek()));
  out = *v;
  take();
  return true;
}

bool TokenReader::expect_u32(uint32_t& out) {
  Token where = peek();
  uint64_t v = 0;
  if (!expect_u64(v)) return false;
  if (v > UINT32_MAX) return fail(where, "the number does not fit into 32 bits");
  out = static_cast<uint32_t>(v);
  return true;
}

bool TokenReader::expect_name(std::string& out) {
  if (peek().kind != Kind::kName) return fail("expected @name, found " + quoted(peek()));
  std::string_view raw = peek().text;
  out = unquote(raw);
  if (out.empty() && raw != "\"\"") return fail("a bad escape in a quoted name");
  take();
  return true;
}

bool TokenReader::accept_location(uint32_t& out) {
  if (peek().kind != Kind::kLocation) return true;
  auto loc = parse_constant(Type::kI32, peek().text);
  if (!loc) return fail("the location does not fit into 32 bits");
  out = static_cast<uint32_t>(*loc);
  take();
  return true;
}

// ---- Module ---------------------------------------------------------------------------------

namespace {

bool parse_inlined_body(TokenReader& in, InlinedBody& b) {
  uint32_t method = 0, others = 0;
  if (in.peek().kind == Kind::kName && !in.expect_name(b.name)) return false;
  bool ok = in.expect("#") && in.expect_u32(method) && in.expect_word("in") &&
            in.expect_u32(b.parent) && in.expect_word("site") && in.expect_u32(b.site) &&
            in.expect_word("sites") && in.expect_u32(b.block_sites) && in.expect("+") &&
            in.expect_u32(others) && in.accept_location(b.loc);
  if (!ok) return false;
  if (uint64_t{b.block_sites} + others > kMaxSites) return in.fail("too many sites");
  b.method = MethodId(method);
  b.site_count = b.block_sites + others;
  return true;
}

bool parse_inlined(TokenReader& in, FunctionHeader& h) {
  if (!in.accept(",")) return true;
  if (!in.expect_word("inlined") || !in.expect("[")) return false;
  do {
    if (!parse_inlined_body(in, h.inlined.emplace_back())) return false;
  } while (in.accept(","));
  return in.expect("]");
}

bool parse_bracket(TokenReader& in, FunctionHeader& h) {
  Token where = in.peek();
  bool ok = in.expect_word("sites") && in.expect_u32(h.block_sites) && in.expect("+") &&
            in.expect_u32(h.other_sites) && in.expect(",") && in.expect_word("loops") &&
            in.expect_u32(h.loops) && in.expect(",") && in.expect_word("cfg") &&
            in.expect_u64(h.cfg_hash) && parse_inlined(in, h) && in.expect("]");
  if (!ok) return false;
  h.numbered = true;
  if (uint64_t{h.block_sites} + h.other_sites > kMaxSites || h.loops > kMaxSites) {
    return in.fail(where, "more than " + std::to_string(kMaxSites) + " sites or loops");
  }
  return true;
}

bool parse_header(TokenReader& in, FunctionHeader& h) {
  if (!in.expect_word("func") || !in.expect_name(h.name)) return false;
  if (!in.expect_signature(h.signature)) return false;
  if (in.accept("[") && !parse_bracket(in, h)) return false;
  return in.expect("{") && in.expect_newline();
}

bool collect_headers(TokenReader& in, ModuleHeaders& headers) {
  bool line_start = true;
  while (!in.at_end()) {
    Token t = in.peek();
    if (!line_start || !t.is(Kind::kWord, "func")) {
      line_start = in.take().kind == Kind::kNewline;
      continue;
    }
    FunctionHeader h;
    if (!parse_header(in, h)) return false;
    auto index = static_cast<uint32_t>(headers.functions.size());
    if (!headers.by_name.emplace(h.name, index).second) {
      return in.fail(t, "a second function @" + h.name);
    }
    headers.functions.push_back(std::move(h));
    line_start = true;
  }
  in.rewind();
  return true;
}

}  // namespace

Result<Module> parse_module(std::string_view text, const ParseOptions& options) {
  std::vector<Token> tokens = lex(text);
  TokenReader in(tokens, options.file);
  ModuleHeaders headers;
  if (!collect_headers(in, headers)) return in.error();
  Module m;
  in.skip_newlines();
  while (!in.at_end()) {
    if (m.functions.size() == headers.functions.size()) {
      in.fail("expected 'func', found " + quoted(in.peek()));
      return in.error();
    }
    FunctionParser p(in, headers, static_cast<uint32_t>(m.functions.size()), options);
    if (!p.parse()) return in.error();
    m.functions.push_back(p.take());
    in.skip_newlines();
  }
  return m;
}

// ---- Function -------------------------------------------------------------------------------

bool FunctionParser::parse() {
  FunctionHeader again;
  if (!parse_header(in_, again)) return false;
  f_.name = header_.name;
  f_.signature_id = f_.intern(header_.signature);
  while (!in_.accept("}")) {
    bool is_block = number_after('b', in_.peek()) != UINT32_MAX;
    if (!is_block && !current_.valid()) {
      return in_.fail("expected a block, found " + quoted(in_.peek()));
    }
    if (!(is_block ? block() : instruction())) return false;
  }
  return in_.expect_newline() && finish();
}

bool FunctionParser::block() {
  Token where = in_.take();
  Mention<Block>* m = mention_block(where);
  if (m->defined) return in_.fail(where, "block " + std::string(where.text) + " is defined twice");
  m->defined = true;
  current_ = m->id;
  f_.layout.push_back(current_);
  if (in_.accept("(") && !block_params(current_)) return false;
  return in_.expect(":") && in_.expect_newline();
}

bool FunctionParser::block_params(Block b) {
  std::vector<Value> params;
  do {
    Token name = in_.take();
    Type t;
    Value v;
    if (!in_.expect(":") || !in_.expect_type(t) || !define(name, t, v)) return false;
    f_.value(v) = {t, InstId::none(), b, static_cast<uint32_t>(params.size())};
    params.push_back(v);
  } while (in_.accept(","));
  f_.block(b).params = f_.make_list(params);
  return in_.expect(")");
}

// Every name that is used must be defined; reports the first use of one that is not.
bool FunctionParser::finish() {
  const Token* first = nullptr;
  auto check = [&](const auto& mentions) {
    for (const auto& [number, m] : mentions) {
      if (m.defined) continue;
      bool earlier = first == nullptr || m.where.text.data() < first->text.data();
      if (earlier) first = &m.where;
    }
  };
  check(values_);
  check(blocks_);
  if (first) return in_.fail(*first, std::string(first->text) + " is never defined");
  if (!header_.numbered) {
    number_sites(f_);
    return true;
  }
  f_.block_sites = header_.block_sites;
  f_.site_count = header_.block_sites + header_.other_sites;
  f_.loop_count = header_.loops;
  f_.cfg_hash = header_.cfg_hash;
  f_.inlined = header_.inlined;
  return true;
}

FunctionParser::Mention<Value>* FunctionParser::mention_value(const Token& t) {
  uint32_t n = number_after('v', t);
  if (n == UINT32_MAX) {
    in_.fail(t, "expected a value, found " + quoted(t));
    return nullptr;
  }
  auto [it, fresh] = values_.try_emplace(n);
  if (fresh) {
    it->second = {Value(static_cast<uint32_t>(f_.values.size())), t};
    f_.values.emplace_back();
  }
  return &it->second;
}

FunctionParser::Mention<Block>* FunctionParser::mention_block(const Token& t) {
  uint32_t n = number_after('b', t);
  if (n == UINT32_MAX) {
    in_.fail(t, "expected a block, found " + quoted(t));
    return nullptr;
  }
  auto [it, fresh] = blocks_.try_emplace(n);
  if (fresh) it->second = {f_.add_block(), t};
  return &it->second;
}

bool FunctionParser::value(Value& out) {
  Mention<Value>* m = mention_value(in_.peek());
  if (m == nullptr) return false;
  in_.take();
  out = m->id;
  return true;
}

bool FunctionParser::define(const Token& t, Type type, Value& out) {
  Mention<Value>* m = mention_value(t);
  if (m == nullptr) return false;
  if (m->defined) return in_.fail(t, std::string(t.text) + " is defined twice");
  m->defined = true;
  out = m->id;
  f_.value(out).type = type;
  return true;
}

}  // namespace uptier::jit
