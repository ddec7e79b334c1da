"""The operations of a store in Redis, as scripts: the server runs one at a time, so that each is atomic.

All keys begin with the store's prefix in braces, which puts them into one slot of a cluster:

    {p}:row:KIND\\0CLIENT\\0KEY     a hash: v value, u until, s size in bytes
    {p}:sum:KIND\\0CLIENT\\0KEY     a hash: u until, and n followed by its name for each total
    {p}:claim:KIND\\0CLIENT\\0KEY   a hash: h holder, u until
    {p}:claim:held KIND\\0CLIENT\\0   a hash: a and e, each followed by a holder: amounts and until; u the last until
    {p}:names:KIND                  a set in the order of its bytes: CLIENT\\0KEY of each row and total
    {p}:ends:row, :sum, :claim      sets by until, for pruning
    {p}:ages                        a set by age: rows that expire
    {p}:age, :bytes, :lasting       counters: the last age, the bytes of all rows, of those that never expire
    {p}:version                     of this layout

Names are UTF-8, whose bytes are in the order of code points; none contains a NUL or the byte FF. Numbers are strings
with 17 digits, which are exact. No key has a time to live: an eviction policy for such keys does not touch the store.

Law: a script changes nothing before it has decided to, and every change of a row keeps the sets and counters true.
"""

from __future__ import annotations

from typing import Final

VERSION: Final = 1

_HEAD: Final = """
local P = KEYS[1]
local function number(text)
    if text == 'inf' then return math.huge elseif text == '-inf' then return -math.huge end
    return tonumber(text)
end
local function lives(key, now)
    local ends = redis.call('HGET', key, 'u')
    return ends and number(ends) > now
end
local function forget(name, one, other)
    local cut = string.find(name, '\\0', 1, true)
    redis.call('DEL', P .. ':' .. one .. ':' .. name)
    redis.call('ZREM', P .. ':ends:' .. one, name)
    if redis.call('EXISTS', P .. ':' .. other .. ':' .. name) == 0 then
        redis.call('ZREM', P .. ':names:' .. string.sub(name, 1, cut - 1), string.sub(name, cut + 1))
    end
end
local function uncount(name)
    local old = redis.call('HMGET', P .. ':row:' .. name, 's', 'u')
    if old[1] then
        redis.call('DECRBY', P .. ':bytes', old[1])
        if old[2] == 'inf' then redis.call('DECRBY', P .. ':lasting', old[1]) end
    end
end
local function forget_row(name)
    uncount(name)
    redis.call('ZREM', P .. ':ages', name)
    forget(name, 'row', 'sum')
end
"""

# now, until, kind, client, how many keys follow, those keys, then key, size and value of each row
KEEP: Final = f"""{_HEAD}
local now, until_, owner = number(ARGV[1]), ARGV[2], ARGV[3] .. '\\0' .. ARGV[4] .. '\\0'
local first = 6 + tonumber(ARGV[5])
for n = 6, first - 1 do
    if lives(P .. ':row:' .. owner .. ARGV[n], now) then return ARGV[n] end
end
for n = first, #ARGV, 3 do
    local name, size = owner .. ARGV[n], ARGV[n + 1]
    uncount(name)
    redis.call('HSET', P .. ':row:' .. name, 'u', until_, 's', size, 'v', ARGV[n + 2])
    redis.call('ZADD', P .. ':names:' .. ARGV[3], 0, ARGV[4] .. '\\0' .. ARGV[n])
    redis.call('ZADD', P .. ':ends:row', until_, name)
    redis.call('INCRBY', P .. ':bytes', size)
    if until_ == 'inf' then
        redis.call('INCRBY', P .. ':lasting', size)
        redis.call('ZREM', P .. ':ages', name)
    else
        redis.call('ZADD', P .. ':ages', redis.call('INCR', P .. ':age'), name)
    end
end
return false
"""

# now, kind, client, max bytes, keys: the values, or how many bytes they are
FIND: Final = f"""{_HEAD}
local now, owner, total, found = number(ARGV[1]), ARGV[2] .. '\\0' .. ARGV[3] .. '\\0', 0, {{}}
for n = 5, #ARGV do
    local key = P .. ':row:' .. owner .. ARGV[n]
    found[n - 4] = lives(key, now) and key
    if found[n - 4] then total = total + redis.call('HSTRLEN', key, 'v') end
end
if total > tonumber(ARGV[4]) then return total end
for n, key in ipairs(found) do found[n] = key and redis.call('HGET', key, 'v') end
return found
"""

# now, kind, client, keys: how many there were
REMOVE: Final = f"""{_HEAD}
local now, owner, gone = number(ARGV[1]), ARGV[2] .. '\\0' .. ARGV[3] .. '\\0', 0
for n = 4, #ARGV do
    if lives(P .. ':row:' .. owner .. ARGV[n], now) then
        forget_row(owner .. ARGV[n])
        gone = gone + 1
    end
end
return gone
"""

# now, until, kind, client, key, the name of the writer's claim, this addition and how long it is known, or nothing;
# name and amount of each: names, each after an n, and totals
ADD: Final = f"""{_HEAD}
local now, ends = number(ARGV[1]), ARGV[2]
local name = ARGV[3] .. '\\0' .. ARGV[4] .. '\\0' .. ARGV[5]
local key, marked, addition = P .. ':sum:' .. name, ARGV[6], ARGV[7]
if marked ~= '' then
    local claim = P .. ':claim:' .. marked
    if lives(claim, now) and redis.call('HGET', claim, 'h') == addition then
        return lives(key, now) and redis.call('HGETALL', key) or {{}}
    end
    redis.call('HSET', claim, 'h', addition, 'u', ARGV[8])
    redis.call('ZADD', P .. ':ends:claim', ARGV[8], marked)
end
if lives(key, now) then
    local old = redis.call('HGET', key, 'u')
    if number(old) > number(ends) then ends = old end
else
    redis.call('DEL', key)
end
redis.call('HSET', key, 'u', ends)
redis.call('ZADD', P .. ':ends:sum', ends, name)
redis.call('ZADD', P .. ':names:' .. ARGV[3], 0, ARGV[4] .. '\\0' .. ARGV[5])
for n = 9, #ARGV, 2 do
    local total = tonumber(redis.call('HGET', key, 'n' .. ARGV[n]) or '0') + tonumber(ARGV[n + 1])
    redis.call('HSET', key, 'n' .. ARGV[n], string.format('%.17g', total))
end
return redis.call('HGETALL', key)
"""

# now, until, kind, client, key, holder: the holder now
CLAIM: Final = f"""{_HEAD}
local now, holder = number(ARGV[1]), ARGV[6]
local name = ARGV[3] .. '\\0' .. ARGV[4] .. '\\0' .. ARGV[5]
local key = P .. ':claim:' .. name
if lives(key, now) then
    local held = redis.call('HGET', key, 'h')
    if held ~= holder then return held end
end
if number(ARGV[2]) <= now then
    redis.call('DEL', key)
    redis.call('ZREM', P .. ':ends:claim', name)
    return ''
end
redis.call('HSET', key, 'h', holder, 'u', ARGV[2])
redis.call('ZADD', P .. ':ends:claim', ARGV[2], name)
return holder
"""

# now, until, kind, client, holder, the amounts or nothing: the amounts of all holders
HOLD: Final = f"""{_HEAD}
local now, ends, name = number(ARGV[1]), ARGV[2], ARGV[3] .. '\\0' .. ARGV[4] .. '\\0'
local key, found, last = P .. ':claim:' .. name, {{}}, nil
if ARGV[6] == '' then redis.call('HDEL', key, 'a' .. ARGV[5], 'e' .. ARGV[5])
else redis.call('HSET', key, 'a' .. ARGV[5], ARGV[6], 'e' .. ARGV[5], ends) end
for _, field in ipairs(redis.call('HKEYS', key)) do
    if string.sub(field, 1, 1) == 'e' then
        local holder, its_end = string.sub(field, 2), redis.call('HGET', key, field)
        if number(its_end) > now then
            found[#found + 1] = redis.call('HGET', key, 'a' .. holder)
            if not last or number(its_end) > number(last) then last = its_end end
        else
            redis.call('HDEL', key, 'a' .. holder, field)
        end
    end
end
if last then
    redis.call('HSET', key, 'u', last)
    redis.call('ZADD', P .. ':ends:claim', last, name)
else
    redis.call('DEL', key)
    redis.call('ZREM', P .. ':ends:claim', name)
end
return found
"""

# now, kind, the range, the prefix of keys, max rows, max bytes, max names to visit:
# bytes, the last name visited unless it was the last one of all, and name, value and totals of each row
SCAN: Final = f"""{_HEAD}
local now, kind, prefix = number(ARGV[1]), ARGV[2], ARGV[5]
local limit, max_bytes, visited = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local names = redis.call('ZRANGEBYLEX', P .. ':names:' .. kind, ARGV[3], ARGV[4], 'LIMIT', 0, visited)
local found, total, last = {{}}, 0, #names == visited and names[visited]
for _, name in ipairs(names) do
    local start = string.find(name, '\\0', 1, true) + 1
    if string.sub(name, start, start + #prefix - 1) == prefix then
        local row, sum = P .. ':row:' .. kind .. '\\0' .. name, P .. ':sum:' .. kind .. '\\0' .. name
        local has_row, has_sum = lives(row, now), lives(sum, now)
        if has_row then total = total + redis.call('HSTRLEN', row, 'v') end
        if total > max_bytes then return {{total}} end
        if has_row or has_sum then
            found[#found + 1] = name
            found[#found + 1] = has_row and redis.call('HGET', row, 'v')
            found[#found + 1] = has_sum and redis.call('HGETALL', sum)
        end
        if #found == 3 * limit then last = false break end
    end
end
return {{total, last, found}}
"""

# now, one of row, sum and claim, the max number: how many were removed
EXPIRE: Final = f"""{_HEAD}
local names = redis.call('ZRANGEBYSCORE', P .. ':ends:' .. ARGV[2], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, name in ipairs(names) do
    if ARGV[2] == 'row' then forget_row(name)
    elseif ARGV[2] == 'sum' then forget(name, 'sum', 'row')
    else
        redis.call('DEL', P .. ':claim:' .. name)
        redis.call('ZREM', P .. ':ends:claim', name)
    end
end
return #names
"""

# max bytes, max rows: how many were removed
SHRINK: Final = f"""{_HEAD}
local max_bytes, gone = tonumber(ARGV[1]), 0
if tonumber(redis.call('GET', P .. ':lasting') or '0') > max_bytes then return 0 end
for _, name in ipairs(redis.call('ZRANGE', P .. ':ages', 0, tonumber(ARGV[2]) - 1)) do
    if tonumber(redis.call('GET', P .. ':bytes')) <= max_bytes then break end
    forget_row(name)
    gone = gone + 1
end
return gone
"""

SCRIPTS: Final = (KEEP, FIND, REMOVE, ADD, CLAIM, HOLD, SCAN, EXPIRE, SHRINK)
