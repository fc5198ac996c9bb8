-- What a worker says of itself: kept for 5 s, its capacity for an hour.
--
-- Its sockets are counted by the gateway they came through. Those that no gateway of the fleet answers for are
-- strangers: through one that has been silent for too long, or past all of them. They take room as well.
--
-- KEYS[1]  the calendar; all other keys of the fleet are called like it, with the same hash tag
-- ARGV     name, capacity or '', open, pending, setup_p95_s, lag_s, state, sockets by gateway (JSON)

local REPORT_S = 5
local ROOM_S = 3600 -- a worker that cannot report keeps its capacity: without one it would have room for all

local prefix = string.match(KEYS[1], '^(.*):calendar$')
local name, capacity, open, pending, setup_p95_s, lag_s, state = unpack(ARGV)
local report_key, room_key = prefix .. ':worker:' .. name, prefix .. ':room:' .. name

local strangers = 0
for gateway, count in pairs(cjson.decode(ARGV[8])) do
  local answered_for = 0
  if redis.call('ZSCORE', prefix .. ':gateways', gateway) then
    answered_for = tonumber(redis.call('HGET', prefix .. ':gateway:' .. gateway, 'worker:' .. name) or 0)
  end
  strangers = strangers + math.max(0, count - answered_for)
end

local figures = { 'open', open, 'pending', pending, 'setup_p95_s', setup_p95_s, 'lag_s', lag_s, 'state', state }
redis.call('DEL', report_key, room_key)
redis.call('HSET', report_key, unpack(figures))
if capacity ~= '' then
  redis.call('HSET', report_key, 'capacity', capacity)
  redis.call('HSET', room_key, 'capacity', capacity)
end
redis.call('HSET', room_key, 'strangers', strangers)
redis.call('EXPIRE', report_key, REPORT_S)
redis.call('EXPIRE', room_key, ROOM_S)
