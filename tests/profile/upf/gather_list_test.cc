// Pieces of data sources: whole chunks wherever the pieces begin and end; all else is refused.
#include <gtest/gtest.h>
#include <sys/uio.h>

#include "profile/upf/foreign.h"
#include "profile/upf/gathered.h"
#include "profile/upf/read.h"
#include "profile/upf/uploads.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"

namespace uptier::gather_list_test {
namespace {

using profile::Bytes;
using profile::ByteSpan;
using profile::GatheredSum;

static_assert(sizeof(Piece) == sizeof(struct iovec));

ByteSpan bytes_of(const auto& object) { return std::as_bytes(std::span(&object, 1)); }
ByteSpan bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

Bytes joined(std::span<const Piece> pieces) {
  Bytes all;
  for (const Piece& p : pieces) {
    const auto* first = static_cast<const std::byte*>(p.data);
    all.insert(all.end(), first, first + p.bytes);
  }
  return all;
}

ForeignTables read(const Bytes& file) {
  const Result<ProfileFile> read = profile_from_file(file);
  EXPECT_TRUE(read.ok()) << read.error().message;
  if (!read.ok()) return {};
  EXPECT_TRUE(read->warnings.empty()) << read->warnings.front();
  return read->foreign;
}

// Returns why pieces are refused; empty if they are not.
std::string refusal(std::span<const Piece> pieces) {
  GatheredSum sum;
  const Status s = profile::add_pieces(pieces, sum);
  EXPECT_TRUE(s.ok() || sum.empty()) << "a refused source adds nothing";
  return s.ok() ? "" : s.error().message;
}
std::string refusal(const Bytes& bytes) {
  const Piece one{bytes.data(), bytes.size()};
  return refusal({&one, 1});
}

struct Example {
  const uint64_t hits = 41, range[5] = {2, 10, 0, 4, 6};
  const std::string log = "eleven bytes", table = std::string(1000, 't');
  GatherList list;

  Example() {
    const GatheredInstrument three[] = {
        {"iree.instrument.counter", "flow", "abcd", "k1", "{}", bytes_of(hits)},
        {"iree.instrument.range", "flow", "abcd", "k2", "{}", bytes_of(range)},
        {"x.log", "flow", "abcd", "k3", "", bytes_of(std::string_view(log))}};
    list.instruments(three);
    list.user_data("my.table", "{\"rows\":1}", bytes_of(std::string_view(table)));
  }
};

TEST(GatherList, pieces_are_a_database_that_readers_understand) {
  Example e;
  ASSERT_EQ(e.list.problem(), nullptr);
  EXPECT_EQ(refusal(e.list.pieces()), "");
  const ForeignTables tables = read(joined(e.list.pieces()));
  ASSERT_EQ(tables.instruments.size(), 3u);
  ASSERT_EQ(tables.data.size(), 1u);
  EXPECT_EQ(tables.data.begin()->type, "my.table");
  EXPECT_EQ(tables.data.begin()->metadata, "{\"rows\":1}");
  EXPECT_TRUE(std::ranges::equal(tables.data.begin()->data, bytes_of(std::string_view(e.table))));
  const auto hits = query(joined(e.list.pieces()), "flow", "abcd", "k1");
  ASSERT_TRUE(hits);
  EXPECT_EQ(std::get<CounterAnswer>(hits->what).count, 41u);
}

TEST(GatherList, payloads_are_borrowed_and_little_else_is_made) {
  Example e;
  size_t from_table = 0, from_hits = 0, copied = 0;
  for (const Piece& p : e.list.pieces()) {
    if (p.data == e.table.data()) {
      from_table += p.bytes;
    } else if (p.data == &e.hits) {
      from_hits += p.bytes;
    } else if (p.data != &e.range && p.data != e.log.data()) {
      copied += p.bytes;
    }
  }
  EXPECT_EQ(from_table, e.table.size());
  EXPECT_EQ(from_hits, sizeof e.hits);
  EXPECT_LT(copied, 700u);
}

// The same bytes in pieces of any size, empty ones included.
TEST(GatherList, chunks_may_be_cut_into_pieces_anywhere) {
  Example e;
  const Bytes whole = joined(e.list.pieces());
  GatheredSum expected;
  ASSERT_TRUE(profile::add_pieces(e.list.pieces(), expected).ok());
  for (const size_t size : {1u, 7u, 16u, 33u, 1000u}) {
    std::vector<Piece> pieces;
    for (size_t at = 0; at < whole.size(); at += size) {
      pieces.push_back({whole.data() + at, std::min(size, whole.size() - at)});
      pieces.push_back({nullptr, 0});
    }
    GatheredSum sum;
    ASSERT_TRUE(profile::add_pieces(pieces, sum).ok());
    EXPECT_EQ(sum.numbers, expected.numbers) << size;
    EXPECT_EQ(sum.others, expected.others) << size;
    EXPECT_EQ(profile::segment_hash(pieces), profile::segment_hash(e.list.pieces()));
  }
}

TEST(GatherList, the_hash_is_the_name_that_readers_give_the_segment) {
  Example e;
  GatherList list;
  list.copy(profile::gathered_header(77));
  std::vector<Piece> pieces(list.pieces().begin(), list.pieces().end());
  pieces.insert(pieces.end(), e.list.pieces().begin(), e.list.pieces().end());
  const Bytes file = joined(pieces);
  const profile::UpfReader reader(file);
  ASSERT_EQ(reader.segments().size(), 1u);
  const UploadId name{0, profile::segment_hash(pieces)};
  EXPECT_EQ(reader.segments()[0].info.uploads, std::vector{name});
}

TEST(GatherList, truncated_chunks_are_refused_wherever_they_end) {
  Example e;
  const Bytes whole = joined(e.list.pieces());
  std::set<size_t> ends;  // of chunks
  for (size_t at = 0; at < whole.size();) {
    at += profile::read_idb_header(ByteSpan(whole).subspan(at))->size();
    ends.insert(at);
  }
  for (size_t size = 1; size < whole.size(); ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(refusal(cut).empty(), ends.contains(size)) << size << ": " << refusal(cut);
  }
}

TEST(GatherList, a_refusal_says_where_which_rule_and_what_to_do) {
  Example e;
  const Bytes whole = joined(e.list.pieces());
  const size_t table = profile::read_idb_header(whole)->size();  // after the strings
  const size_t definitions = table + 16 + profile::kInstrumentHead;
  const auto broken = [&](size_t at, uint64_t value, size_t size) {
    Bytes bad = whole;
    std::memcpy(bad.data() + at, &value, size);
    return refusal(bad);
  };
  const std::string here = "byte " + std::to_string(table) + ": ";
  EXPECT_EQ(broken(table, 0, 4), here +
                                     "no chunk begins here (the magic is not IIDB); append whole "
                                     "chunks, padded to 16 bytes");
  EXPECT_EQ(broken(table + 4, 0x42, 2),
            here +
                "a chunk of type 66; profile files keep string tables (1), instrument tables (16) "
                "and user data (65535)");
  EXPECT_EQ(broken(table + 4, 0, 2), here + "a file header; leave it out, the runtime writes one");
  EXPECT_EQ(broken(table + 6, 3, 2),
            here + "version 3 of a chunk; profile files keep version 0 only");
  EXPECT_NE(broken(table + 8, 1 << 20, 8).find("append all its pieces"), std::string::npos);
  EXPECT_NE(broken(table + 8, ~uint64_t{0}, 8).find("append all its pieces"), std::string::npos);
  EXPECT_EQ(broken(table + 16, 1, 4), here + "instruments: a reserved field is not zero");
  EXPECT_EQ(broken(table + 28, 1000, 4),
            here + "instruments: 1000 instruments are more than the table has room for");
  EXPECT_EQ(broken(definitions + 40, 99, 4), here + "instrument 1 names a string that is none");
  EXPECT_EQ(broken(definitions + 24, 1 << 20, 8),
            here + "instrument 0's payload reaches past the table");
  EXPECT_EQ(broken(definitions + 32, ~uint64_t{0}, 8),
            here + "instrument 0's payload reaches past the table");
  EXPECT_EQ(broken(16 + 8, 1 << 20, 8), "byte 0: string table: string 0 reaches past the table");
}

TEST(GatherList, a_source_has_strings_of_its_own) {
  Example e;
  const Bytes whole = joined(e.list.pieces());
  const size_t table = profile::read_idb_header(whole)->size();
  const Bytes rest(whole.begin() + static_cast<ptrdiff_t>(table), whole.end());
  EXPECT_EQ(refusal(rest), "byte 0: instrument 0 names a string that is none");
}

TEST(GatherList, the_stage_uptier_is_reserved) {
  GatherList list;
  const uint64_t n = 1;
  const GatheredInstrument one{"iree.instrument.counter", kQueryStage, "ab", "k", "", bytes_of(n)};
  list.instruments({&one, 1});
  EXPECT_NE(refusal(list.pieces()).find("instrument 0 has the stage uptier"), std::string::npos);
}

// All definitions name the same large payload, or the same long text.
TEST(GatherList, overlapping_payloads_and_texts_take_bounded_time) {
  const Bytes large(1 << 20);
  for (const bool texts : {false, true}) {
    profile::StringTableBuilder strings;
    const std::string name(texts ? large.size() : 1, 'n');
    std::vector<profile::Instrument> many(3000, {name, "s", name, name, "", {}});
    Bytes table = profile::instrument_definitions(many, strings);
    for (size_t i = 0; i < many.size() && !texts; ++i) {
      profile::store<uint64_t>(table, 16 + 40 * i + 32, large.size());
    }
    table.insert(table.end(), large.begin(), large.end());
    Bytes file;
    profile::append_chunk(file, profile::kIdbStringTable, 0, strings.content());
    profile::append_chunk(file, profile::kIdbInstrumentTable, 0, table);
    const std::string why = refusal(file);
    EXPECT_NE(why.find(texts ? "texts of instruments come to more than 16 times"
                             : "payloads of instruments come to more than 16 times"),
              std::string::npos)
        << why;
  }
}

TEST(GatherList, data_that_was_added_can_be_taken_away) {
  Example e;
  GatheredSum sum;
  ASSERT_TRUE(profile::add_pieces(e.list.pieces(), sum).ok());
  const ForeignTables added = read(joined(e.list.pieces()));
  // Another process has counted at the same place, and left data of its own.
  ForeignTables others;
  const uint64_t more = 9, range[5] = {3, 30, 0, -uint64_t{2}, 20};
  const auto instrument = [](const char* type, const char* key, ByteSpan payload) {
    return ForeignInstrument{type, "flow", "abcd", key, "{}", {payload.begin(), payload.end()}};
  };
  others.add(instrument("iree.instrument.counter", "k1", bytes_of(more)));
  others.add(instrument("iree.instrument.range", "k2", bytes_of(range)));
  others.data.insert({"my.table", "{\"rows\":1}", Bytes(1000)});
  ForeignTables both = others;
  both += added;
  EXPECT_EQ(both.data.size(), 2u);
  profile::leave_out(sum, both);
  EXPECT_EQ(both, others);
  ForeignTables alone = added;
  profile::leave_out(sum, alone);
  EXPECT_TRUE(alone.empty()) << "nothing is left of data that nobody else has";
}

TEST(GatherList, counters_of_other_code_have_a_key_for_each_word) {
  const uint64_t words[] = {5, 6};
  const std::string_view keys[] = {"a", "b"};
  GatherList list;
  list.counters("device", "ab", keys, words);
  ASSERT_EQ(list.problem(), nullptr);
  const auto six = query(joined(list.pieces()), "device", "ab", "b");
  ASSERT_TRUE(six);
  EXPECT_EQ(std::get<CounterAnswer>(six->what).count, 6u);
  list.counters("device", "ab", keys, std::span(words).first(1));
  ASSERT_NE(list.problem(), nullptr);
  EXPECT_NE(std::string(list.problem()).find("one key for each word"), std::string::npos);
}

}  // namespace
}  // namespace uptier::gather_list_test
