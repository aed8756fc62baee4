-- Profiles of a fleet in ClickHouse: the rows of `uptier profile export --format=tsv`, summed up.
-- docs/fleet.md says how they come here and back. For ClickHouse 18.16 (Debian 12) and later.
--
-- Law: any part of the rows may be summed up at any time (that is when merges of parts happen), since
-- the rows of two profiles are the rows of their merge, and `profile import` adds up what is left.
-- Columns are those of profile/formats/tsv.h.

CREATE DATABASE IF NOT EXISTS uptier;

-- What is fed, and not kept: each row goes to one of the tables below.
CREATE TABLE IF NOT EXISTS uptier.rows
(
    module UInt64, function UInt32, method String, cfg_hash UInt64, schema UInt64,
    kind String, site UInt32, word String, key_module UInt64, key Int64,
    rule String, count UInt64, estimate UInt64, voter String
) ENGINE = Null;

-- Sums. A row whose sums are all 0 is dropped when parts are merged, and none is fed.
CREATE TABLE IF NOT EXISTS uptier.sums
(
    module UInt64, function UInt32, method String, cfg_hash UInt64, schema UInt64,
    kind String, site UInt32, word String, key_module UInt64, key Int64,
    rule String, count UInt64, estimate UInt64
) ENGINE = SummingMergeTree((count, estimate))
ORDER BY (module, function, schema, kind, site, word, key_module, key, method, cfg_hash, rule);

-- Everything that is no sum: the least, the greatest, and what should be the same everywhere. The
-- value is a part of the key, so that equal rows become one.
CREATE TABLE IF NOT EXISTS uptier.facts
(
    module UInt64, function UInt32, method String, cfg_hash UInt64, schema UInt64,
    kind String, site UInt32, word String, key_module UInt64, key Int64,
    rule String, count UInt64, estimate UInt64
) ENGINE = ReplacingMergeTree
ORDER BY (module, function, schema, kind, site, word, key_module, key, method, cfg_hash, rule,
          count, estimate);

CREATE MATERIALIZED VIEW IF NOT EXISTS uptier.to_sums TO uptier.sums AS
SELECT module, function, method, cfg_hash, schema, kind, site, word, key_module, key, rule,
       count, estimate
FROM uptier.rows WHERE rule = 'sum';

CREATE MATERIALIZED VIEW IF NOT EXISTS uptier.to_facts TO uptier.facts AS
SELECT module, function, method, cfg_hash, schema, kind, site, word, key_module, key, rule,
       count, estimate
FROM uptier.rows WHERE rule != 'sum';

-- For caps and quorums (fleet-limits.sql): the sums of each host, and that it has seen a shape or set
-- a gauge. As large as what the hosts have seen, where `sums` is as large as what there is to be seen;
-- leave both statements out where neither is wanted.
CREATE TABLE IF NOT EXISTS uptier.by_voter
(
    module UInt64, function UInt32, method String, cfg_hash UInt64, schema UInt64,
    kind String, site UInt32, word String, key_module UInt64, key Int64,
    voter String, count UInt64, estimate UInt64
) ENGINE = SummingMergeTree((count, estimate))
ORDER BY (module, function, schema, kind, site, word, key_module, key, voter, method, cfg_hash);

CREATE MATERIALIZED VIEW IF NOT EXISTS uptier.to_by_voter TO uptier.by_voter AS
SELECT module, function, method, cfg_hash, schema, kind, site, word, key_module, key, voter,
       if(rule = 'sum', count, toUInt64(1)) AS count, estimate
FROM uptier.rows WHERE rule = 'sum' OR kind = 'shape' OR kind = 'gauge' AND count > 0;

-- What `uptier profile import` reads. Sums are sums, whether parts have been merged or not.
CREATE VIEW IF NOT EXISTS uptier.profile AS
SELECT module, function, method, cfg_hash, schema, kind, site, word, key_module, key, rule,
       sum(count) AS count, sum(estimate) AS estimate
FROM uptier.sums
GROUP BY module, function, method, cfg_hash, schema, kind, site, word, key_module, key, rule
UNION ALL
SELECT DISTINCT module, function, method, cfg_hash, schema, kind, site, word, key_module, key, rule,
       count, estimate
FROM uptier.facts;
