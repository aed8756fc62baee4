// The tables, the statements, and the rounds in which they run.
#ifndef UPTIER_EXAMPLES_STORE_JOBS_H
#define UPTIER_EXAMPLES_STORE_JOBS_H

#include "machine.h"

enum { kPeople = 150, kWindow = 300, kInsertsPerRound = 12 };

// The statements' parameters are ?1, ?2 and so on.
#define STATEMENTS(X)                                                                          \
  X(AddPerson, "insert into person values (?1, ?2, 'person ' || text(?1 * 7 % 100))")          \
  X(AddItem,                                                                                   \
    "insert into item values (null, ?1, ?2, ?3, 'item-' || text(?2 % 97) || '-' || text(?1),"  \
    " case when ?2 % 5 = 0 then ?1 * 1000 else 0 end)")                                        \
  X(AddEntry, "insert into journal values (null, ?1, ?2)")                                     \
  X(Find, "select weight, name, price from item where id = ?1")                                \
  X(Range,                                                                                     \
    "select count(*), sum(weight), most(weight), least(name) from item"                        \
    " where id between ?1 and ?2 and weight % 3 <> 0")                                         \
  X(OfKind,                                                                                    \
    "select sum(weight * owner % 17), count(*), sum(length(name)) from item"                   \
    " where kind = ?1 and name like 'item-1%'")                                                \
  X(Groups,                                                                                    \
    "select group, count(*), sum(weight), most(price) from item where id >= ?1"                \
    " group by owner % 20")                                                                    \
  X(Join,                                                                                      \
    "select count(*), sum(person.age * weight), most(title) from item, person"                 \
    " where item.kind = ?1 and person.id = owner and (age > 30 or price > 0)")                 \
  X(Heaviest,                                                                                  \
    "select id, weight, upper(name) from item where id >= ?1 and not price > 0"                \
    " order by -(weight * 1000 + id % 1000) limit 10")                                         \
  X(Names,                                                                                     \
    "select sum(hash(substr(name, 5, 2)) % 1000), count(*) from item"                          \
    " where id >= ?1 and (name like '%-1_' or length(name) > 9)")                              \
  X(Reweigh,                                                                                   \
    "update item set weight = weight * 3 % 1001, price = coalesce(price, 0) + 1"               \
    " where id between ?1 and ?2")                                                             \
  X(ChangeKind, "update item set kind = (kind + ?2) % 12 where kind = ?1 and weight < ?3")     \
  X(Expire, "delete from item where id <= ?1")                                                 \
  X(Drop, "delete from item where owner = ?1 and weight % 7 = ?2")                             \
  X(Digest,                                                                                    \
    "select count(*), sum(amount * (case when amount & 1 = 1 then 1 else 2 end)) from journal" \
    " where id >= ?1")                                                                         \
  X(Forget, "delete from journal where id <= ?1")

#define NAME(name, text) k##name,
#define TEXT(name, text) text,
typedef enum { STATEMENTS(NAME) kStatements } Statement;
static const char* const kTexts[] = {STATEMENTS(TEXT)};

static Program programs[kStatements];
static Machine machine;

static void start_store(void) {
  start_pages();
  create("create table person (id, age, title)");
  create("create table item (id, kind, weight, owner, name, price)");
  create("create index item (kind)");
  create("create index item (owner)");
  create("create table journal (id, round, amount)");
  for (uint32_t i = 0; i < kStatements; ++i) compile(kTexts[i], &programs[i]);
}

static void query(Statement statement, int64_t a, int64_t b, int64_t c) {
  machine.parameters[0] = of_number(a);
  machine.parameters[1] = of_number(b);
  machine.parameters[2] = of_number(c);
  run(&machine, &programs[statement]);
  reset(&machine);
}

static void add_people(uint32_t* random) {
  for (int64_t i = 0; i < kPeople; ++i) query(kAddPerson, i, 18 + next_random(random) % 60, 0);
}

static void run_round(uint32_t round, uint32_t* random) {
  for (int i = 0; i < kInsertsPerRound; ++i) {
    uint32_t choice = next_random(random);
    query(kAddItem, choice % 12, choice >> 8 & 1023, (choice >> 18) % kPeople);
    query(kAddEntry, round, choice % 5000, 0);
  }
  int64_t last = last_key(&tables[1].tree), first = last > kWindow ? last - kWindow : 0;
  for (int i = 0; i < 16; ++i) query(kFind, first + next_random(random) % kWindow, 0, 0);
  int64_t from = first + next_random(random) % (kWindow / 2);
  query(kRange, from, from + 100, 0);
  query(kOfKind, next_random(random) % 12, 0, 0);
  query(kGroups, last - 150, 0, 0);
  query(kJoin, next_random(random) % 12, 0, 0);
  query(kHeaviest, last - 80, 0, 0);
  query(kNames, last - 120, 0, 0);
  query(kReweigh, from, from + 25, 0);
  query(kDigest, (int64_t)round * kInsertsPerRound - 60, 0, 0);
  if (round % 4 == 0) query(kChangeKind, next_random(random) % 12, 1 + round % 11, 100);
  if (round % 8 == 0) query(kDrop, next_random(random) % kPeople, round % 7, 0);
  query(kExpire, first, 0, 0);
  query(kForget, (int64_t)round * kInsertsPerRound - 500, 0, 0);
}

#endif  // UPTIER_EXAMPLES_STORE_JOBS_H
