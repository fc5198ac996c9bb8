-- How many other gateways a fleet has, for one whose calls fail: as far as can be told from what is there.
--
-- KEYS[1]  the calendar
-- ARGV[1]  the gateway
-- Returns  a number; 0: there are none, or it cannot be told

local alive_key = string.match(KEYS[1], '^(.*):calendar$') .. ':gateways'
local alive = redis.pcall('ZCARD', alive_key)
if type(alive) == 'number' then
  return redis.call('ZSCORE', alive_key, ARGV[1]) and alive - 1 or alive
end
local told = redis.pcall('HGET', KEYS[1], 'gateways')
return type(told) == 'string' and tonumber(told) or 0
