-- Who of those that ask the same asks for all of them, and what it has found out about each. It asks as long as it says
-- so again in time; the others find out by their own next call that it does not.
--
-- KEYS[1]  of the question; all other keys here are called like it, with the same hash tag
-- ARGV     member; what it is, '' if it leaves; ms between two calls; '1' if it would ask for all; what was found, by
--          member, in JSON, '' for nothing new
-- Returns  1 or 0: it is the one that asks; what was found about it of late, '' for nothing; then, for the one that asks,
--          members and what they are, one after the other: 1,000 at most, as nobody is told of the others they ask
--          for themselves

local LEASE, FRESH, DEAD = 1.5, 4, 8 -- in calls
local GARBAGE_MS = 600000
local MOST_MEMBERS, MOST_BYTES = 1000, 4096

local members_key, found_key, lease_key = KEYS[1] .. ':members', KEYS[1] .. ':found', KEYS[1] .. ':lease'
local member, is, every_ms, wants, found = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Others may have written there, by whatever program: what cannot be read is not there.
for key, kind in pairs({ [members_key] = 'hash', [found_key] = 'hash', [lease_key] = 'string' }) do
  if redis.call('TYPE', key).ok ~= kind then
    redis.call('DEL', key)
  end
end
local lease_ms, left_ms = math.ceil(LEASE * every_ms), redis.call('PTTL', lease_key)
if left_ms == -1 or left_ms > lease_ms then -- nobody who asks takes it for so long
  redis.call('DEL', lease_key)
end
if redis.call('HLEN', members_key) > 10 * MOST_MEMBERS then -- more than can be looked through
  redis.call('UNLINK', members_key)
end

local function read(text, calls)
  local known, row = pcall(cjson.decode, text or '')
  local is_row = known and type(row) == 'table' and type(row.text) == 'string' and type(row.at) == 'number'
  local can_be = is_row and #row.text <= MOST_BYTES and row.at <= now
  return can_be and now - row.at <= calls * every_ms and row.text or nil
end

local function write(key, name, text)
  redis.call('HSET', key, name, cjson.encode({ text = text, at = now }))
  redis.call('PEXPIRE', key, GARBAGE_MS)
end

if is == '' or wants ~= '1' then
  if redis.call('GET', lease_key) == member then
    redis.call('DEL', lease_key)
  end
end
if is == '' then
  redis.call('HDEL', members_key, member)
  redis.call('HDEL', found_key, member)
  return { 0, '' }
end

write(members_key, member, is)
if wants == '1' then
  redis.call('SET', lease_key, member, 'NX', 'PX', lease_ms)
end
local about = read(redis.call('HGET', found_key, member), FRESH) or ''
if redis.call('GET', lease_key) ~= member then
  return { 0, about }
end

redis.call('PEXPIRE', lease_key, lease_ms)
if found ~= '' then
  for name, text in pairs(cjson.decode(found)) do
    write(found_key, name, text)
  end
end
local told, rows = { 1, about }, redis.call('HGETALL', members_key)
for index = 1, #rows, 2 do
  local text = read(rows[index + 1], DEAD)
  if not text then
    redis.call('HDEL', members_key, rows[index])
    redis.call('HDEL', found_key, rows[index])
  elseif #told < 2 + 2 * MOST_MEMBERS then
    table.insert(told, rows[index])
    table.insert(told, text)
  end
end
return told
