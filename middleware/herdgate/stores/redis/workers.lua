-- Which worker has room. Granted, not used, is what counts against a capacity, and what the worker holds beside that:
-- so no number of gateways exceeds it. A worker that has never reported has room for all.

local LEARNING_S = DEAD_S -- in which all gateways have told their counts to a calendar that was found empty
local FIRST_REPORT_S = 2 -- in which every gateway that lives has called, and every worker that reports has reported

local workers = {} -- those this gateway names, in its order
for index, name in ipairs(head.workers) do
  workers[index] = { name = name }
end

local FIGURES = { 'state', 'setup_p95_s', 'pending', 'capacity' }

-- What the worker has reported, read when it is first asked for.
local function report_of(worker)
  if worker.is_read then
    return worker
  end
  local report = redis.call('HMGET', prefix .. ':worker:' .. worker.name, unpack(FIGURES))
  local room = redis.call('HMGET', room_key_of(worker.name), 'capacity', 'strangers')
  worker.is_read = true
  worker.state = report[1] or 'UP'
  worker.setup_p95_s, worker.pending = tonumber(report[2] or 0), tonumber(report[3] or 0)
  worker.capacity = tonumber(report[4] or room[1] or nil)
  worker.strangers = tonumber(room[2] or 0)
  worker.is_silent = room[2] and not report[1]
  return worker
end

local function is_learning(seconds)
  return cal.clock - cal.born < seconds
end

-- This Redis came back empty, and who holds what is being told again.
local function has_lost_memory()
  return cal.former ~= 0 and cal.clock - cal.lost < FIRST_REPORT_S
end

local function headroom(worker)
  report_of(worker)
  if worker.state ~= 'UP' or has_lost_memory() then
    return 0
  end
  if not worker.capacity then
    return math.huge
  end
  local capacity = is_learning(LEARNING_S) and math.floor(worker.capacity / 2) or worker.capacity
  return capacity - get('granted', 'worker:' .. worker.name) - worker.strangers
end

-- The room at each worker, for a gateway that may have to go by it while this Redis is away: -1 at one that wants nobody,
-- "inf" at one without reports. Empty: nothing is known yet, what the gateway was told last still holds.
local function tell_rooms()
  local rooms = {}
  for index, worker in ipairs(has_lost_memory() and {} or workers) do
    local room = math.max(0, headroom(worker))
    rooms[index] = worker.state == 'DRAINING' and -1 or room == math.huge and 'inf' or room
  end
  return table.concat(rooms, ' ')
end

-- The worker for an arrival that asks for this one: 0 asks for none, a position for that one, 255 for any.
-- nil: it has no room.
local function choose(asked)
  if asked == 0 then
    return 0
  end
  if asked ~= 255 then
    return headroom(workers[asked]) >= 1 and asked or nil
  end
  local best, least
  for index, worker in ipairs(workers) do
    local room = headroom(worker)
    local load = get('granted', 'worker:' .. worker.name) / (worker.capacity or 1)
    if room >= 1 and (not best or load < least) then
      best, least = index, load
    end
  end
  return best
end
