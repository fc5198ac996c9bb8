-- What the other files build on: the arguments, the state of the fleet, hashes read when first touched and written once.

local prefix = string.match(KEYS[1], '^(.*):calendar$')
local head = cjson.decode(ARGV[1])
local gateway = head.gateway

local GARBAGE_S = 7 * 24 * 3600 -- after which what a fleet that is gone has left behind goes too

-- Uniform numbers in (0, 1), from the seed of the call (Park and Miller, 1988): exact in doubles.
local seed = head.seed
local function random()
  seed = (seed * 16807) % 2147483647
  return seed / 2147483647
end

local function between(low, high)
  return low + (high - low) * random()
end

local function exact(number)
  return string.format('%.17g', number)
end

local function trunc(number)
  return number < 0 and math.ceil(number) or math.floor(number)
end

local hashes = {}

local function hash(name)
  local known = hashes[name]
  if not known then
    known = { key = prefix .. ':' .. name, values = {}, changed = {} }
    hashes[name] = known
  end
  return known
end

-- A number of a hash; 0 where there is none.
local function get(name, field)
  local known = hash(name)
  local value = known.values[field]
  if value == nil then
    value = tonumber(redis.call('HGET', known.key, field) or 0)
    known.values[field] = value
  end
  return value
end

local function put(name, field, value)
  local known = hash(name)
  known.values[field] = value
  known.changed[field] = true
end

local function fields_of(name)
  local fields = {}
  for _, field in ipairs(redis.call('HKEYS', hash(name).key)) do
    fields[field] = true
  end
  for field in pairs(hash(name).changed) do
    fields[field] = hash(name).values[field] ~= 0 or nil
  end
  return fields
end

-- What is 0 is not kept.
local function write_hashes()
  for _, known in pairs(hashes) do
    local kept, gone = {}, {}
    for field in pairs(known.changed) do
      local value = known.values[field]
      if value == 0 then
        gone[#gone + 1] = field
      else
        kept[#kept + 1] = field
        kept[#kept + 1] = exact(value)
      end
    end
    for first = 1, #kept, 2000 do
      redis.call('HSET', known.key, unpack(kept, first, math.min(first + 1999, #kept)))
    end
    for first = 1, #gone, 2000 do
      redis.call('HDEL', known.key, unpack(gone, first, math.min(first + 1999, #gone)))
    end
    if #kept > 0 then
      redis.call('EXPIRE', known.key, GARBAGE_S)
    end
  end
end

-- Fleet time: the server's clock, but a step of it counts for a second at most, and never backwards.
local function now()
  if head.now then
    return head.now
  end
  local time = redis.call('TIME')
  return time[1] + time[2] / 1000000
end
