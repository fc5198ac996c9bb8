-- One call of a gateway for the limits per client that hold over its whole fleet: a rate (keyed GCRA, as in
-- herdgate.core.gcra) and a number of sockets. A socket is a *place*: a member of a sorted set with the time at which it
-- is over unless its gateway renews it, so that what a dead gateway held is free again by itself.
--
-- KEYS[1]  the prefix of all keys, with the fleet's hash tag
-- ARGV[1]  JSON, see herdgate.stores.redis.client_wire
-- Returns  how many renewed places had gone, and two numbers an arrival: 0, -1 (no place) or which rate it is over;
--          and for how many microseconds
--
-- Time is the fleet's, in whole microseconds, as state.lua and calendar.lua keep it.

local prefix = KEYS[1]
local asked = cjson.decode(ARGV[1])

local PLACE_US = 10 * 1000000
local GARBAGE_MS = 60 * 1000 -- a set outlives its members, as the fleet's time stands still while nobody calls
local NEVER_US = 600 * 1000000 -- what a client of rate 0 is told to wait
local LONGEST_MS = 6 * 24 * 3600 * 1000 -- a rate is forgotten before the calendar, whose clock it is told in

local function fleet_now()
  if asked.now_us then
    return asked.now_us
  end
  local time = redis.call('TIME')
  local calendar = redis.call('HMGET', prefix .. ':calendar', 'clock', 'time')
  local clock = tonumber(calendar[1] or 0)
  local since = calendar[2] and time[1] + time[2] / 1000000 - calendar[2] or 0
  return math.floor((clock + math.max(0, math.min(1, since))) * 1000000)
end

local now = fleet_now()

local function add(key, place)
  redis.call('ZADD', key, now + PLACE_US, place)
  redis.call('PEXPIRE', key, GARBAGE_MS)
end

local function each_place(places, act)
  for _, place in ipairs(places) do
    for _, name in ipairs(place[2]) do
      act(prefix .. ':open:' .. name, place[1])
    end
  end
end

local lost = 0

local function renew(key, place)
  if redis.call('ZADD', key, 'XX', 'CH', now + PLACE_US, place) == 0 then
    lost = lost + 1
    add(key, place)
  else
    redis.call('PEXPIRE', key, GARBAGE_MS)
  end
end

each_place(asked.drop, function(key, place)
  redis.call('ZREM', key, place)
end)
each_place(asked.put, add)
each_place(asked.renew, renew)

-- The first rate this arrival is over, and for how long; nil: none, and `tats` holds them all.
local function over(rates, tats)
  for index, rate in ipairs(rates) do
    local name, interval, tolerance = unpack(rate)
    if interval == 0 then
      return index, NEVER_US
    end
    tats[index] = tonumber(redis.call('GET', prefix .. ':rate:' .. name) or 0)
    local early = tats[index] - now - tolerance
    if early > 0 then
      return index, early
    end
  end
end

local function charge(rates, tats)
  for index, rate in ipairs(rates) do
    local name, interval = unpack(rate)
    local tat = math.max(tats[index], now) + interval
    local kept_ms = math.min(LONGEST_MS, math.ceil((tat - now) / 1000) + GARBAGE_MS)
    redis.call('SET', prefix .. ':rate:' .. name, string.format('%.0f', tat), 'PX', string.format('%.0f', kept_ms))
  end
end

-- Places that are over are only taken out where they would stand in the way: so there are never more than the cap.
local function is_full(key, cap)
  if redis.call('ZCARD', key) < cap then
    return false
  end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  return redis.call('ZCARD', key) >= cap
end

local function has_room(caps)
  for _, cap in ipairs(caps) do
    if is_full(prefix .. ':open:' .. cap[1], cap[2]) then
      return false
    end
  end
  return true
end

-- In all rates and sets, or in none of either; without a place asked for, the caps are only looked at.
local function answer(place, rates, caps)
  local tats = {}
  local index, wait = over(rates, tats)
  if index then
    return index, math.min(wait, 9e15)
  end
  charge(rates, tats)
  if not has_room(caps) then
    return -1, 0
  end
  if place ~= '' then
    for _, cap in ipairs(caps) do
      add(prefix .. ':open:' .. cap[1], place)
    end
  end
  return 0, 0
end

local told = { lost }
for _, arrival in ipairs(asked.asks) do
  local code, wait = answer(unpack(arrival))
  told[#told + 1] = code
  told[#told + 1] = wait
end
return told
