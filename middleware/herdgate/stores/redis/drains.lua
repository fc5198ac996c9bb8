-- Who of a fleet drains, who waits for its turn, and what each has left. A row lives for 3 s after it was told last.
--
-- Gateways are groups: the processes of one drain together. Turns go by who has asked first.
--
-- KEYS[1]  the calendar; all other keys of the fleet are called like it, with the same hash tag
-- ARGV     process; its group; its sockets left to move, '' if it drains no more; gateways that may drain at once, ''
--          for half of them; '1' if it waits for its turn; processes of the group
-- Returns  1 or 0: it has its turn or not; its part of all that is left to those that drain, in text, 1 at most

local LEASE_S, MOST_LEFT, MOST_ROWS = 3, 1e7, 10000

local prefix = string.match(KEYS[1], '^(.*):calendar$')
local key = prefix .. ':drains'
local process, group, left, most, waits, processes = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000

-- Others may have written there, by whatever program, or the clock was set back: what cannot be is not there.
if redis.call('TYPE', key).ok ~= 'hash' or redis.call('HLEN', key) > MOST_ROWS then
  redis.call('UNLINK', key)
end

if left == '' then
  redis.call('HDEL', key, process)
  return { 0, '0' }
end

local function is_within(number, least, greatest)
  return type(number) == 'number' and number >= least and number <= greatest
end

local function read(text)
  local known, row = pcall(cjson.decode, text)
  local is_row = known and type(row) == 'table' and type(row.group) == 'string' and type(row.drains) == 'boolean'
  local can_be = is_row and is_within(row.left, 0, MOST_LEFT) and is_within(row.asked, 0, now)
  return can_be and is_within(row.dies, now, now + LEASE_S) and row or nil
end

local rows, told = {}, redis.call('HGETALL', key)
for index = 1, #told, 2 do
  rows[told[index]] = read(told[index + 1])
  if not rows[told[index]] then
    redis.call('HDEL', key, told[index])
  end
end

local mine = rows[process] or { asked = now, drains = false }
mine.group, mine.left, mine.dies = group, math.min(tonumber(left), MOST_LEFT), now + LEASE_S
rows[process] = mine

-- Of each group: whether it drains, and when it has asked first.
local groups = {}
for _, row in pairs(rows) do
  local known = groups[row.group] or { drains = false, asked = row.asked }
  known.drains = known.drains or row.drains
  known.asked = math.min(known.asked, row.asked)
  groups[row.group] = known
end

local function has_turn()
  if groups[group].drains or waits ~= '1' then
    return true
  end
  local gateways = math.floor(redis.call('ZCARD', prefix .. ':gateways') / tonumber(processes))
  local room = tonumber(most) or math.max(1, math.floor(gateways / 2))
  for name, other in pairs(groups) do
    local is_before = other.asked < groups[group].asked or (other.asked == groups[group].asked and name < group)
    if name ~= group and (other.drains or is_before) then
      room = room - 1
    end
  end
  return room > 0
end

mine.drains = has_turn()
redis.call('HSET', key, process, cjson.encode(mine))
redis.call('EXPIRE', key, 60)

-- This process counts whether it has its turn or not: what it is told is never more than there is.
local total = mine.left
for name, row in pairs(rows) do
  total = total + (name ~= process and row.drains and row.left or 0)
end
local part = total > 0 and mine.left / total or 1
return { mine.drains and 1 or 0, string.format('%.17g', part) }
