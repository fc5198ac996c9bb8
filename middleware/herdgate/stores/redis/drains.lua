-- Who of a fleet drains, who waits for its turn, and what each has left. A row lives for 3 s after it was told last.
--
-- Gateways are groups: the processes of one drain together. Turns go by who has asked first.
--
-- KEYS[1]  the calendar; all other keys of the fleet are called like it, with the same hash tag
-- ARGV     process; its group; its sockets left to move, '' if it drains no more; gateways that may drain at once, ''
--          for half of them; '1' if it waits for its turn; processes of the group
-- Returns  1 or 0: it has its turn or not; its part of all that is left to those that drain, in text

local LEASE_S = 3

local prefix = string.match(KEYS[1], '^(.*):calendar$')
local key = prefix .. ':drains'
local process, group, left, most, waits, processes = unpack(ARGV)
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000

if left == '' then
  redis.call('HDEL', key, process)
  return { 0, '0' }
end

local rows, told = {}, redis.call('HGETALL', key)
for index = 1, #told, 2 do
  local row = cjson.decode(told[index + 1])
  if row.dies > now then
    rows[told[index]] = row
  else
    redis.call('HDEL', key, told[index])
  end
end

local mine = rows[process] or { group = group, asked = now, drains = false }
mine.left, mine.dies = tonumber(left), now + LEASE_S
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

local total = 0
for _, row in pairs(rows) do
  total = total + (row.drains and row.left or 0)
end
local part = total > 0 and mine.left / total or 1
return { mine.drains and 1 or 0, string.format('%.6f', part) }
