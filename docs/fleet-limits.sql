-- The sum of a fleet under a cap and a quorum: what `uptier profile merge --cap-per-host --quorum` makes
-- of one file of each host (profile/algebra/quorum.h has the laws), of the tables of fleet.sql, as rows that
-- `uptier profile import` reads. docs/fleet.md says how it is asked.
--
--   cap     runs that a host counts for at most; 0: all it has. Below 2^32
--   quorum  hosts that must have seen what is told; 1: any that has

SELECT module, function, method, cfg_hash, schema, kind, site, w AS word, km AS key_module, k AS key,
       'sum' AS rule, sum(c) AS count, sum(e) AS estimate, '' AS voter
FROM
(
    -- Each host's sums, cap / runs of them where it has more runs, rounded down; entries of tables that
    -- too few have seen become `other`.
    SELECT module, function, method, cfg_hash, schema, kind, site,
           word = 'entry' AND (module, function, schema, kind, site, key_module, key) NOT IN
           (
               SELECT module, function, schema, kind, site, key_module, key
               FROM uptier.by_voter WHERE word = 'entry'
               GROUP BY module, function, schema, kind, site, key_module, key
               HAVING uniqExact(voter) >= {quorum:UInt64}
           ) AS lost,
           if(lost, 'other', word) AS w, if(lost, toUInt64(0), key_module) AS km,
           if(lost, toInt64(0), key) AS k,
           {cap:UInt64} = 0 OR runs <= {cap:UInt64} OR kind = 'file' AND word != 'weight' AS whole,
           greatest(runs, 1) AS n,
           if(whole, s, intDiv(s, n) * {cap:UInt64} + intDiv(s % n * {cap:UInt64}, n)) AS c,
           if(whole, t, intDiv(t, n) * {cap:UInt64} + intDiv(t % n * {cap:UInt64}, n)) AS e
    FROM
    (
        SELECT module, function, method, cfg_hash, schema, kind, site, word, key_module, key, voter,
               sum(count) AS s, sum(estimate) AS t
        FROM uptier.by_voter
        WHERE kind NOT IN ('shape', 'gauge') AND NOT match(word, '[.][0-3]$')
        GROUP BY module, function, method, cfg_hash, schema, kind, site, word, key_module, key, voter
    )
    ANY LEFT JOIN
    (
        SELECT voter, sum(count) AS runs FROM uptier.by_voter
        WHERE kind = 'file' AND word = 'runs' GROUP BY voter
    ) USING voter
    WHERE kind = 'file' OR (module, function, schema) IN
    (
        -- The methods that are told. All of one host's counts may be 0 although it has their rows.
        SELECT module, function, schema FROM uptier.by_voter
        WHERE schema != 0 AND (count > 0 OR word = 'entry') AND
              (kind != 'method' OR word IN ('calls', 'iterations'))
        GROUP BY module, function, schema HAVING uniqExact(voter) >= {quorum:UInt64}
    )
    OR kind IN ('call', 'first_call') AND (module, function) IN
    (
        SELECT module, function FROM uptier.by_voter
        WHERE schema != 0 AND (count > 0 OR word = 'entry') AND
              (kind != 'method' OR word IN ('calls', 'iterations'))
        GROUP BY module, function, schema HAVING uniqExact(voter) >= {quorum:UInt64}
    )
    AND
    (
        kind = 'first_call' OR (key_module, toUInt32(key)) IN
        (
            SELECT module, function FROM uptier.by_voter
            WHERE schema != 0 AND (count > 0 OR word = 'entry') AND
                  (kind != 'method' OR word IN ('calls', 'iterations'))
            GROUP BY module, function, schema HAVING uniqExact(voter) >= {quorum:UInt64}
        )
        AND (module, function, key_module, key) IN
        (
            SELECT module, function, key_module, key FROM uptier.by_voter WHERE kind = 'call'
            GROUP BY module, function, key_module, key HAVING uniqExact(voter) >= {quorum:UInt64}
        )
    )
)
GROUP BY module, function, method, cfg_hash, schema, kind, site, word, key_module, key
HAVING count > 0 OR estimate > 0

UNION ALL

-- The same of wide sums: 128 bits in two's complement, in four words of 32 bits. Their carries are
-- propagated (l), the sign taken off (m), times cap (p), divided by runs (q), and the sign put back (z).
SELECT module, function, method, cfg_hash, schema, kind, site, w AS word, toUInt64(0) AS key_module,
       toInt64(0) AS key, 'sum' AS rule, sum(if(which = 0, v, 0)) AS count,
       sum(if(which = 1, v, 0)) AS estimate, '' AS voter
FROM
(
    SELECT module, function, method, cfg_hash, schema, kind, site, which,
           {cap:UInt64} = 0 OR runs <= {cap:UInt64} AS whole,
           toUInt64(4294967295) AS mask, toUInt64(4294967296) AS base,
           if(whole, toUInt64(1), runs) AS n, if(whole, toUInt64(1), toUInt64({cap:UInt64})) AS times,
           bitAnd(s0, mask) AS l0, s1 + bitShiftRight(s0, 32) AS t1, bitAnd(t1, mask) AS l1,
           s2 + bitShiftRight(t1, 32) AS t2, bitAnd(t2, mask) AS l2,
           s3 + bitShiftRight(t2, 32) AS t3, bitAnd(t3, mask) AS l3,
           toUInt64(l3 >= 2147483648) AS minus, minus * mask AS flip,
           bitXor(l0, flip) + minus AS n0, bitXor(l1, flip) + bitShiftRight(n0, 32) AS n1,
           bitXor(l2, flip) + bitShiftRight(n1, 32) AS n2,
           bitXor(l3, flip) + bitShiftRight(n2, 32) AS n3,
           bitAnd(n0, mask) * times AS p0, bitAnd(n1, mask) * times + bitShiftRight(p0, 32) AS p1,
           bitAnd(n2, mask) * times + bitShiftRight(p1, 32) AS p2,
           bitAnd(n3, mask) * times + bitShiftRight(p2, 32) AS p3,
           bitShiftRight(p3, 32) % n * base + bitAnd(p3, mask) AS d3, intDiv(d3, n) AS q3,
           d3 % n * base + bitAnd(p2, mask) AS d2, intDiv(d2, n) AS q2,
           d2 % n * base + bitAnd(p1, mask) AS d1, intDiv(d1, n) AS q1,
           d1 % n * base + bitAnd(p0, mask) AS d0, intDiv(d0, n) AS q0,
           bitXor(q0, flip) + minus AS z0, bitXor(q1, flip) + bitShiftRight(z0, 32) AS z1,
           bitXor(q2, flip) + bitShiftRight(z1, 32) AS z2,
           bitXor(q3, flip) + bitShiftRight(z2, 32) AS z3,
           arrayJoin([0, 1, 2, 3]) AS limb,
           concat(name, '.', toString(limb)) AS w,
           bitAnd([z0, z1, z2, z3][limb + 1], mask) AS v
    FROM
    (
        SELECT module, function, method, cfg_hash, schema, kind, site, voter, which,
               substring(word, 1, length(word) - 2) AS name,
               sumIf(x, match(word, '0$')) AS s0, sumIf(x, match(word, '1$')) AS s1,
               sumIf(x, match(word, '2$')) AS s2, sumIf(x, match(word, '3$')) AS s3
        FROM
        (
            SELECT module, function, method, cfg_hash, schema, kind, site, word, voter,
                   arrayJoin([0, 1]) AS which, if(which = 0, count, estimate) AS x
            FROM uptier.by_voter WHERE match(word, '[.][0-3]$')
        )
        GROUP BY module, function, method, cfg_hash, schema, kind, site, voter, which, name
    )
    ANY LEFT JOIN
    (
        SELECT voter, sum(count) AS runs FROM uptier.by_voter
        WHERE kind = 'file' AND word = 'runs' GROUP BY voter
    ) USING voter
    WHERE (module, function, schema) IN
    (
        SELECT module, function, schema FROM uptier.by_voter
        WHERE schema != 0 AND (count > 0 OR word = 'entry') AND
              (kind != 'method' OR word IN ('calls', 'iterations'))
        GROUP BY module, function, schema HAVING uniqExact(voter) >= {quorum:UInt64}
    )
)
GROUP BY module, function, method, cfg_hash, schema, kind, site, word
HAVING count > 0 OR estimate > 0

UNION ALL

-- What is no sum is not scaled.
SELECT DISTINCT module, function, method, cfg_hash, schema, kind, site, word, key_module, key, rule,
       count, estimate, '' AS voter
FROM uptier.facts
WHERE kind = 'file' OR (module, function, schema) IN
(
    SELECT module, function, schema FROM uptier.by_voter
    WHERE schema != 0 AND (count > 0 OR word = 'entry') AND
          (kind != 'method' OR word IN ('calls', 'iterations'))
    GROUP BY module, function, schema HAVING uniqExact(voter) >= {quorum:UInt64}
)
OR kind = 'shape' AND (module, function, cfg_hash) IN
(
    SELECT module, function, cfg_hash FROM uptier.by_voter
    WHERE schema != 0 AND (count > 0 OR word = 'entry') AND
          (kind != 'method' OR word IN ('calls', 'iterations'))
    GROUP BY module, function, schema, cfg_hash HAVING uniqExact(voter) >= {quorum:UInt64}
)
AND (module, function, method, cfg_hash) IN
(
    SELECT module, function, method, cfg_hash FROM uptier.by_voter WHERE kind = 'shape'
    GROUP BY module, function, method, cfg_hash HAVING uniqExact(voter) >= {quorum:UInt64}
)
