-- Who is alive, and what each has been granted. A gateway tells its counts with every call, as they stand; what it is
-- granted is added here until it tells them again. The counts of one that has not called for a while are taken off.

local DEAD_S = 10 -- of the server's clock, while fleet time may stand still

local alive_key = prefix .. ':gateways'

local function row_of(name)
  return 'gateway:' .. name
end

local function room_key_of(worker)
  return prefix .. ':room:' .. worker
end

-- It may live on, out of reach, and its sockets with it: they are strangers to its workers until those report again.
local function leave_behind(field, count)
  local worker = string.match(field, '^worker:(.*)$')
  if worker and count > 0 and redis.call('EXISTS', room_key_of(worker)) == 1 then
    redis.call('HINCRBY', room_key_of(worker), 'strangers', count)
  end
end

local function forget(name)
  for field in pairs(fields_of(row_of(name))) do
    local count = get(row_of(name), field)
    put('granted', field, get('granted', field) - count)
    put(row_of(name), field, 0)
    leave_behind(field, count)
  end
  redis.call('DEL', prefix .. ':reply:' .. name)
  redis.call('ZREM', alive_key, name)
end

-- Counts are by worker: its name; and of all sockets, those with a worker or without: 'open' and 'pending'.
local function tell(field, count)
  local row = row_of(gateway)
  put('granted', field, get('granted', field) - get(row, field) + count)
  put(row, field, count)
end

local function grant(field)
  put('granted', field, get('granted', field) + 1)
  put(row_of(gateway), field, get(row_of(gateway), field) + 1)
end

-- A call may lie in a connection that its gateway has given up, and be run after a later one: it knows old counts.
local function check_order()
  local last = tonumber(redis.call('HGET', prefix .. ':reply:' .. gateway, 'sequence') or 0)
  if head.sequence < last then
    error('call ' .. head.sequence .. ' was overtaken by ' .. last)
  end
end

-- A pause of all gateways counts, a step of the server's clock does not, where the caller's own clock says so: it knows
-- how long ago it has called itself. Who is taken for dead wrongly tells its counts again with its next call.
local function heartbeat()
  cal.life = cal.life + math.min(gap, DEAD_S + 1, (head.since_s or DEAD_S) + 1)
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', alive_key, '-inf', '(' .. exact(cal.life - DEAD_S))) do
    forget(name)
  end
  redis.call('ZADD', alive_key, exact(cal.life), gateway)
  redis.call('EXPIRE', alive_key, GARBAGE_S)
  for field in pairs(fields_of(row_of(gateway))) do
    if not head.counts[field] then
      tell(field, 0)
    end
  end
  for field, count in pairs(head.counts) do
    tell(field, count)
  end
end
