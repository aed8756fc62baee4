// Data of other tools in profile files, in the layout of IREE's database: it is read at any
// position, survives merges and saves, and counts once.
#include <gtest/gtest.h>

#include "profile/upf/foreign.h"
#include "profile/upf/profile_sum.h"
#include "profile/upf/uploads.h"
#include "profile/upf/write.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"

namespace uptier::upf_foreign_test {
namespace {

using profile::Bytes;
using profile::ByteSpan;
using profile::UpfReader;
using test::Generator;

Bytes bytes_of(std::initializer_list<uint64_t> words) {
  const std::vector<uint64_t> list(words);
  const ByteSpan bytes = std::as_bytes(std::span(list));
  return Bytes(bytes.begin(), bytes.end());
}

Bytes cat(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// In the layout of IREE's tools, without seals: header, strings, user data if there is any, and a
// table with one counter at its end.
Bytes database(uint64_t hits, const std::string& data = {}) {
  const Bytes count = bytes_of({hits}), range = bytes_of({2, hits, 0, 4, 6}), other(12);
  profile::StringTableBuilder strings;
  const Bytes table = profile::instrument_table(
      {{"iree.instrument.counter", "flow", "abcd", "dispatch_3", "{}", count},
       {"iree.instrument.range", "flow", "abcd", "dispatch_4", "{}", range},
       {"iree.instrument.log", "vm", "ef", "#7", "", other}},
      strings);
  Bytes user;
  profile::ByteWriter writer(user);
  writer.u32(strings.add("my.user.data"));
  writer.u32(strings.add("{\"a\":1}"));
  writer.u64(0);
  const ByteSpan text = std::as_bytes(std::span(data));
  user.insert(user.end(), text.begin(), text.end());
  Bytes out;
  profile::append_chunk(out, profile::kIdbFileHeader, 0, {});
  profile::append_chunk(out, profile::kIdbStringTable, 0, strings.content());
  if (!data.empty()) profile::append_chunk(out, profile::kIdbUserData, 0, user);
  profile::append_chunk(out, profile::kIdbInstrumentTable, 0, table);
  return out;
}

ProfileInfo info_of(uint64_t run) {
  ProfileInfo info;
  info.engine = "uptier 0.1.0";
  info.time = 1000 + run;
  info.runs = 1;
  info.weight = ProfileInfo::kRunWeight;
  info.interval = 16;
  info.uploads = {{1000 + run, run}};
  return info;
}

// The observations of each run: methods with one schema, so that consecutive files add up.
Profile seen() {
  Generator generator(1);
  Profile p;
  while (p.methods.size() < 3) p = generator.profile();
  return p;
}

Bytes ours(uint64_t run) { return profile_to_file(seen(), info_of(run)); }

ProfileFile read(const Bytes& file) {
  Result<ProfileFile> read = profile_from_file(file);
  EXPECT_TRUE(read.ok()) << read.error().message;
  return read.ok() ? std::move(*read) : ProfileFile{};
}

uint64_t hits_of(const Bytes& file) {
  const auto a = query(file, "flow", "abcd", "dispatch_3");
  return a ? std::get<CounterAnswer>(a->what).count : 0;
}

TEST(UpfForeign, a_database_is_read_wherever_it_stands) {
  const Bytes iree = database(17, "payload"), one = ours(1), two = ours(2);
  for (const Bytes& file :
       {iree, cat({one, iree}), cat({iree, one}), cat({one, iree, two}), cat({iree, one, two})}) {
    const ProfileFile back = read(file);
    EXPECT_FALSE(back.truncated) << file.size();
    EXPECT_TRUE(back.warnings.empty()) << back.warnings.front();
    EXPECT_EQ(back.foreign, read(iree).foreign);
    EXPECT_EQ(hits_of(file), 17u);
    EXPECT_TRUE(looks_like_profile(file));
  }
  EXPECT_EQ(read(iree).profile, Profile{});
  EXPECT_EQ(read(iree).info.runs, 0u);
  EXPECT_EQ(read(cat({iree, one})).profile, seen());
  EXPECT_EQ(read(cat({iree, one})).info.interval, 16u);
  const ForeignTables foreign = read(iree).foreign;
  EXPECT_EQ(foreign.instruments.size(), 3u);
  ASSERT_EQ(foreign.data.size(), 1u);
  EXPECT_EQ(foreign.data.begin()->type, "my.user.data");
  EXPECT_EQ(foreign.data.begin()->metadata, "{\"a\":1}");
  EXPECT_EQ(foreign.data.begin()->data.size(), 7u);
}

TEST(UpfForeign, a_segment_that_lost_its_end_is_truncated_whatever_follows) {
  const Bytes iree = database(17), one = ours(1);
  UpfReader whole(one);
  // Cut before the seal of the strings, and before the seal of the last table.
  for (const size_t size : {size_t{48}, one.size() - 16, one.size() / 2 / 16 * 16}) {
    const Bytes cut(one.begin(), one.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_TRUE(read(cut).truncated) << size;
    EXPECT_TRUE(read(cat({iree, cut})).truncated) << size;
    EXPECT_EQ(hits_of(cat({iree, cut})), 17u);
  }
  for (const size_t chunks : {1u, 2u}) {
    // header, then the chunk of strings, without its seal
    size_t at = 0;
    for (size_t i = 0; i < chunks; ++i) {
      at += profile::read_idb_header(ByteSpan(one).subspan(at))->size();
    }
    const Bytes cut(one.begin(), one.begin() + static_cast<ptrdiff_t>(at));
    EXPECT_TRUE(read(cut).truncated);
    EXPECT_TRUE(read(cut).warnings.empty());
    const ProfileFile both = read(cat({cut, iree}));
    EXPECT_TRUE(both.truncated);
    EXPECT_EQ(both.foreign, read(iree).foreign);
  }
}

TEST(UpfForeign, a_whole_file_behind_a_cut_database_is_whole) {
  const Bytes iree = database(17, std::string(100, 'x')), one = ours(1);
  for (size_t size = 1; size < iree.size(); ++size) {
    Bytes file(iree.begin(), iree.begin() + static_cast<ptrdiff_t>(size));
    file.insert(file.end(), one.begin(), one.end());
    UpfReader reader(file);
    profile::ProfileSum sum;
    for (const size_t i : profile::summed_segments(reader)) sum.add(reader, reader.segments()[i]);
    ASSERT_EQ(sum.take(), seen()) << size;
  }
}

TEST(UpfForeign, sums_keep_them_and_count_each_database_once) {
  const Bytes a = database(17, "payload"), b = database(4, "payload"), run = ours(1);
  const Bytes sum = profile_to_file(read(cat({a, run})));
  EXPECT_EQ(read(sum).foreign, read(a).foreign);
  EXPECT_EQ(read(sum).profile, seen());
  EXPECT_TRUE(read(sum).warnings.empty());
  EXPECT_EQ(hits_of(sum), 17u);
  // The same data again adds nothing, at any position; different data adds.
  for (const Bytes& file :
       {cat({a, a}), cat({sum, a}), cat({a, sum}), cat({a, run, a}), cat({sum, sum})}) {
    EXPECT_EQ(hits_of(file), 17u);
    EXPECT_EQ(read(file).foreign, read(a).foreign);
  }
  const Bytes both = profile_to_file(read(cat({sum, b})));
  EXPECT_EQ(hits_of(both), 21u);
  EXPECT_EQ(hits_of(cat({both, a, b})), 21u);
  EXPECT_EQ(read(cat({a, b})).foreign, read(cat({b, a})).foreign);
  const auto range = query(both, "flow", "abcd", "dispatch_4");
  ASSERT_TRUE(range);
  EXPECT_EQ(std::get<RangeAnswer>(range->what), (RangeAnswer{4, 4, 6, 21.0 / 4}));
  EXPECT_EQ(read(both).foreign.data.size(), 1u);         // the same bytes
  EXPECT_EQ(read(both).foreign.instruments.size(), 3u);  // the log is the same as well
}

// Data of another tool that looks like a profile file stays data.
TEST(UpfForeign, a_file_inside_of_user_data_is_data) {
  const Bytes inner = ours(1), b = ours(2);
  Bytes data(16);
  data.insert(data.end(), inner.begin(), inner.end());
  Bytes file = b;
  profile::append_chunk(file, profile::kIdbUserData, 0, data);
  for (int more = 0; more < 2; ++more) {
    const Result<ProfileFile> back = profile_from_file(file);
    ASSERT_TRUE(back.ok());
    EXPECT_TRUE(back->warnings.empty());
    EXPECT_EQ(back->profile, seen());
    ASSERT_EQ(back->foreign.data.size(), 1u);
    EXPECT_EQ(back->foreign.data.begin()->data, inner);
    file = profile_to_file(*back);  // now sealed, in a segment of a profile file
  }
}

ForeignInstrument instrument(const char* type, const char* key, Bytes payload) {
  return {type, "flow", "abcd", key, "{}", std::move(payload)};
}

TEST(UpfForeign, merge_is_associative_and_commutative) {
  Generator generator(3);
  const char* const types[] = {"iree.instrument.counter", "iree.instrument.range", "x.y"};
  const auto random = [&] {
    ForeignTables t;
    for (uint64_t n = generator.below(12); n > 0; --n) {
      const auto word = [&] {
        return generator.below(2) == 0 ? generator.below(3) : ~uint64_t{0} - generator.below(3);
      };
      Bytes payload;
      switch (generator.below(4)) {
        case 0: payload = bytes_of({word()}); break;
        case 1: payload = bytes_of({word(), word(), word(), word(), word()}); break;
        case 2: payload = bytes_of({0, 0}); break;
        default: payload = Bytes(generator.below(10)); break;
      }
      t.add(instrument(types[generator.below(3)], generator.below(2) == 0 ? "a" : "b",
                       std::move(payload)));
    }
    for (uint64_t n = generator.below(3); n > 0; --n) {
      t.data.insert({"t", "m", Bytes(generator.below(3))});
    }
    return t;
  };
  const auto sum = [](ForeignTables a, const ForeignTables& b) { return a += b; };
  for (int round = 0; round < 2000; ++round) {
    const ForeignTables a = random(), b = random(), c = random();
    ASSERT_EQ(sum(a, b), sum(b, a));
    ASSERT_EQ(sum(sum(a, b), c), sum(a, sum(b, c)));
    ASSERT_EQ(sum(a, {}), a);
    ProfileFile file;
    file.foreign = sum(a, b);
    ASSERT_EQ(read(profile_to_file(file)).foreign, file.foreign);
  }
}

TEST(UpfForeign, known_instruments_are_summed_and_others_kept_as_they_are) {
  ForeignTables t;
  t.add(instrument("iree.instrument.counter", "c", bytes_of({~uint64_t{0} - 1})));
  t.add(instrument("iree.instrument.counter", "c", bytes_of({5})));
  t.add(instrument("iree.instrument.counter", "c", bytes_of({5, 6})));  // two words: unknown, so it
                                                                        // is skipped
  t.add(instrument("iree.instrument.range", "r", bytes_of({1, 10, 0, 10, 10})));
  t.add(instrument("iree.instrument.range", "r",
                   bytes_of({0, 9, 9, 9, 9})));  // a range without values
  t.add(instrument("iree.instrument.range", "r",
                   bytes_of({2, ~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0} - 2, 2})));
  t.add(instrument("x.y", "c", bytes_of({1})));
  t.add(instrument("x.y", "c", bytes_of({1})));
  t.add(instrument("x.y", "c", bytes_of({2})));
  std::vector<Bytes> payloads;
  for (const ForeignInstrument& i : t.instruments) payloads.push_back(i.payload);
  EXPECT_EQ(payloads, (std::vector<Bytes>{bytes_of({~uint64_t{0}}), bytes_of({5, 6}),
                                          bytes_of({3, 9, 0, ~uint64_t{0} - 2, 10}), bytes_of({1}),
                                          bytes_of({2})}));
}

TEST(UpfForeign, reserved_fields_are_zero) {
  const Bytes good = database(17, "payload");
  const size_t strings = profile::read_idb_header(ByteSpan(good).subspan(16))->size();
  const size_t user = 16 + strings;
  const size_t table = user + profile::read_idb_header(ByteSpan(good).subspan(user))->size();
  for (const size_t at : {size_t{16 + 16}, user + 16 + 8, table + 16, table + 20, table + 24}) {
    Bytes bad = good;
    bad[at] = std::byte{1};
    const UpfReader reader(bad);
    ASSERT_GE(reader.warnings().size(), 1u) << at;
    EXPECT_NE(reader.warnings().front().find("a reserved field is not zero"), std::string::npos);
  }
}

// Many texts that all refer to the same one, which is as long as the file.
TEST(UpfForeign, texts_come_to_some_times_the_bytes_at_most) {
  const std::string name(1 << 20, 'n');
  const std::string empty;
  std::vector<profile::Instrument> many;
  for (int i = 0; i < 2000; ++i) many.push_back({name, "flow", name, name, name, {}});
  profile::StringTableBuilder strings;
  const Bytes table = profile::instrument_table(many, strings);
  Bytes file;
  profile::append_chunk(file, profile::kIdbStringTable, 0, strings.content());
  profile::append_chunk(file, profile::kIdbInstrumentTable, 0, table);
  const ProfileFile back = read(file);
  EXPECT_EQ(back.foreign.instruments.size(), 1u);
  ASSERT_EQ(back.warnings.size(), 1u);
  EXPECT_NE(back.warnings[0].find("many times the size"), std::string::npos);
}

// The chunks of three databases after one header: strings, then counters in five tables, then other
// strings and a table that uses these.
struct Chain {
  Bytes bytes;
  std::vector<size_t> at;  // offset of each chunk
};

Chain nine_chunks() {
  Chain c;
  const auto add = [&c](uint16_t type, const Bytes& content) {
    c.at.push_back(c.bytes.size());
    profile::append_chunk(c.bytes, type, 0, content);
  };
  const Bytes count = bytes_of({5});
  profile::StringTableBuilder strings, others;
  std::vector<Bytes> tables;
  const char* const keys[] = {"k0", "k1", "k2", "k3", "k4"};
  for (const char* key : keys) {
    tables.push_back(profile::instrument_table(
        {{"iree.instrument.counter", "flow", "ab", key, "{}", count}}, strings));
  }
  const Bytes last = profile::instrument_table(
      {{"iree.instrument.counter", "flow", "cd", "other", "[]", count}}, others);
  add(profile::kIdbFileHeader, {});
  add(profile::kIdbStringTable, strings.content());
  for (const Bytes& table : tables) add(profile::kIdbInstrumentTable, table);
  add(profile::kIdbStringTable, others.content());
  add(profile::kIdbInstrumentTable, last);
  return c;
}

std::set<std::string> keys_of(const Bytes& file) {
  std::set<std::string> keys;
  const Result<ProfileFile> read = profile_from_file(file);
  if (!read.ok()) return keys;
  for (const ForeignInstrument& i : read->foreign.instruments) keys.insert(i.scope_key);
  return keys;
}

TEST(UpfForeign, reading_goes_on_at_the_magic_behind_a_damaged_header) {
  const Chain whole = nine_chunks();
  ASSERT_EQ(whole.at.size(), 9u);
  const std::set<std::string> all = keys_of(whole.bytes);
  ASSERT_EQ(all.size(), 6u);
  // Damages the magic, or makes the length too large for the file, larger than the chunk, or too
  // small.
  const auto damage = [&](size_t chunk, int kind) {
    Bytes bad = whole.bytes;
    const size_t at = whole.at[chunk];
    const auto length = profile::load<uint64_t>(bad, at + 8);
    if (kind == 0) bad[at] ^= std::byte{1};
    if (kind == 1) profile::store<uint64_t>(bad, at + 8, uint64_t{1} << 40);
    if (kind == 2) profile::store<uint64_t>(bad, at + 8, length + 48);
    if (kind == 3) profile::store<uint64_t>(bad, at + 8, length < 32 ? 48 : length - 32);
    return bad;
  };
  for (size_t chunk = 0; chunk < 9; ++chunk) {
    for (int kind = 0; kind < 4; ++kind) {
      const Bytes bad = damage(chunk, kind);
      const std::set<std::string> kept = keys_of(bad);
      const bool strings = chunk == 1, other_strings = chunk == 7;
      for (const std::string& key : all) {
        const bool its_own = (chunk >= 2 && chunk <= 6 && key == "k" + std::to_string(chunk - 2)) ||
                             (chunk == 8 && key == "other");
        const bool may_go =
            its_own || (strings && key != "other") || (other_strings && key == "other");
        EXPECT_TRUE(may_go || kept.contains(key)) << "chunk " << chunk << " " << kind << " " << key;
      }
      for (const std::string& key : kept) EXPECT_TRUE(all.contains(key)) << key;
      const Result<ProfileFile> read = profile_from_file(bad);
      EXPECT_TRUE(!read.ok() || read->skipped != 0) << "chunk " << chunk << " " << kind;
    }
  }
}

TEST(UpfForeign, strings_that_are_lost_are_not_those_before) {
  const Chain whole = nine_chunks();
  Bytes bad = whole.bytes;
  bad[whole.at[7]] ^= std::byte{1};  // the magic of the second string table
  const Result<ProfileFile> read = profile_from_file(bad);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->foreign.instruments.size(), 5u) << "the last one's names are not known";
}

TEST(UpfForeign, one_bad_view_costs_what_names_it) {
  const Chain whole = nine_chunks();
  const size_t views = whole.at[1] + profile::kIdbHeader + 8;
  std::set<size_t> left;
  const auto count = profile::load<uint32_t>(whole.bytes, whole.at[1] + profile::kIdbHeader + 4);
  for (uint32_t id = 1; id < count; ++id) {
    Bytes bad = whole.bytes;
    profile::store<uint64_t>(bad, views + 16 * size_t{id}, uint64_t{1} << 40);
    const Result<ProfileFile> read = profile_from_file(bad);
    ASSERT_TRUE(read.ok());
    EXPECT_NE(read->skipped, 0u);
    left.insert(read->foreign.instruments.size());
    EXPECT_TRUE(keys_of(bad).contains("other")) << "it has strings of its own";
  }
  // A name that all instruments share costs all five; a key costs its own instrument only.
  EXPECT_EQ(left, (std::set<size_t>{1, 5}));
}

}  // namespace
}  // namespace uptier::upf_foreign_test
