-- The calendar of herdgate.core.calendar, for a whole fleet: the same steps in the same order on the same doubles, so
-- that both give the same answers. What each step means stands there. V begins at Unix time, so that tickets carry it.

local BUCKET_MS = 100
local BUCKETS_PER_S = 10
local MINUTE_MS = 60000
local MOST_SERIALS = 16777216
local LATEST_MS = 281474976710655
local LEAST_SHOW_RATE = 0.01
local SHOW_RATE_MEMORY = 200
local SLOW_TOLD_S = 10.0

local limits = head.limits
local classes = head.classes -- of {name, share}
local is_shared = #classes > 1

local cal = {}
local SCALARS = {
  'v', 'firm', 'tokens', 'clock', 'time', 'first_rate', 'rate', 'burst', 'hold', 'issuer', 'settled', 'worthless',
  'next_settle', 'reserved', 'fraction', 'born', 'controlled', 'configured', 'former',
  'ceiling', 'life', 'lost', 'gateways',
}
local LONGEST_STEP_S = 1 -- of fleet time between two calls
local SLACK_S = 0.1 -- by which a call may take longer to get here than the last one of its gateway
local YOUNG_S = 10 -- in which all gateways that live have called a calendar that was found empty
local mine = {} -- by class: outstanding, show_rate, allowance, settled
local gap = 0 -- of the server's clock since the last call of anyone, whatever it is; never negative
local scalar_key = prefix .. ':calendar'
local speed, grace, hint_cap, horizon, room

local function count_reserved(change)
  cal.reserved = cal.reserved + change
  room = math.max(0, cal.burst - cal.reserved)
end

local function plan_settle()
  cal.next_settle = (trunc(cal.v * BUCKETS_PER_S) + math.max(1, speed)) / BUCKETS_PER_S
end

local function scale()
  speed = cal.rate > 0 and cal.rate / cal.first_rate or 0
  if cal.rate > 0 or cal.first_rate == 0 then
    cal.hold = limits.hold_s * speed
  end
  local faster = math.max(1, speed)
  grace = limits.grace_s * faster
  hint_cap, horizon = limits.hint_cap_s * faster, limits.horizon_s * faster
  if cal.rate > 0 or cal.burst == 0 then
    cal.burst = limits.burst > 0 and limits.burst or math.max(1, cal.rate)
  end
  count_reserved(0)
end

local function show_rate_of(class)
  return math.max(class.show_rate, LEAST_SHOW_RATE)
end

-- Buckets of promises that are over, oldest first: {bucket, issued, kept} each.
local function close(kind, before, since)
  local buckets = {}
  if before - since <= 64 then
    for bucket = since, before - 1 do
      if get(kind .. ':issued', bucket) > 0 then
        buckets[#buckets + 1] = bucket
      end
    end
  else
    for field in pairs(fields_of(kind .. ':issued')) do
      if tonumber(field) < before then
        buckets[#buckets + 1] = tonumber(field)
      end
    end
    table.sort(buckets)
  end
  local closed = {}
  for _, bucket in ipairs(buckets) do
    closed[#closed + 1] = { bucket, get(kind .. ':issued', bucket), get(kind .. ':kept', bucket) }
    put(kind .. ':issued', bucket, 0)
    put(kind .. ':kept', bucket, 0)
  end
  return closed
end

-- Each class has its own mark: gateways may name different ones, as while a deployment rolls.
local function settle_hints(index, over)
  local class = mine[index]
  for _, closed in ipairs(close('hint:' .. classes[index][1], over, class.settled)) do
    local issued, kept = closed[2], closed[3]
    class.outstanding = math.max(0, class.outstanding - (issued - kept))
    local weight = 1 - (1 - 1 / SHOW_RATE_MEMORY) ^ issued
    class.show_rate = class.show_rate + (kept / issued - class.show_rate) * weight
  end
  class.settled = math.max(class.settled, over)
end

local function settle()
  local over = trunc((cal.v - cal.hold) * BUCKETS_PER_S)
  for index in ipairs(mine) do
    settle_hints(index, over)
  end
  for _, closed in ipairs(close('firm', over, cal.settled)) do
    count_reserved(-get('reserved', closed[1]))
    put('reserved', closed[1], 0)
    cal.tokens = math.min(room, cal.tokens + closed[2] - closed[3])
  end
  cal.settled = math.max(cal.settled, over)
  cal.worthless = math.max(cal.worthless, trunc((cal.v - grace) * 1000))
  local minute = math.floor(cal.worthless / MINUTE_MS)
  for field in pairs(fields_of('serials')) do
    if tonumber(field) < minute then
      put('serials', field, 0)
    end
  end
  for _, name in ipairs(redis.call('ZRANGEBYSCORE', prefix .. ':spent', '-inf', '(' .. minute)) do
    redis.call('DEL', prefix .. ':spent:' .. name)
    redis.call('ZREM', prefix .. ':spent', name)
  end
end

-- Refill up to `paid` was handed out already, by a gateway alone.
local function advance(elapsed, paid)
  cal.clock = cal.clock + elapsed
  if elapsed == 0 or cal.rate == 0 then
    return
  end
  local v, before = cal.v + elapsed * speed, math.max(cal.v, paid)
  cal.v = v
  local since = math.max(before, cal.firm)
  if v > since then
    cal.tokens = math.min(room, cal.tokens + (v - since) * cal.first_rate)
  end
  if is_shared then
    for index, class in ipairs(mine) do
      local share = classes[index][2]
      local most = math.max(1, cal.rate * share)
      class.allowance = math.min(most, class.allowance + math.max(0, v - before) * cal.first_rate * share)
    end
  end
  if v >= cal.next_settle then
    plan_settle()
    settle()
  end
end

local function told(ahead)
  if speed >= 1 then
    return ahead / speed
  end
  local most = SLOW_TOLD_S * between(0.5, 1)
  return speed > 0 and math.min(most, ahead / speed) or most
end

local function far()
  return limits.horizon_s * between(1, 2)
end

-- A ticket of this kind for a slot, in ms; nil if there can be none.
local function promise(kind, slot_ms)
  local minute, bucket = math.floor(slot_ms / MINUTE_MS), math.floor(slot_ms / BUCKET_MS)
  local serial = get('serials', minute)
  if serial >= MOST_SERIALS or slot_ms > LATEST_MS then
    return nil
  end
  put('serials', minute, serial + 1)
  put(kind .. ':issued', bucket, get(kind .. ':issued', bucket) + 1)
  return serial
end

local function denied(seconds, spent)
  return { code = 'none', told = seconds, spent = spent }
end

local function hint(klass, least_s, spent)
  local v, class = cal.v, mine[klass]
  if cal.rate == 0 then
    return denied(math.max(least_s, SLOW_TOLD_S * between(0.5, 1)), spent)
  end
  local queue = (class.outstanding + 1) * show_rate_of(class)
  if is_shared then
    local ahead = 0
    for before = 1, klass - 1 do
      ahead = ahead + mine[before].outstanding * show_rate_of(mine[before])
    end
    local share = classes[klass][2]
    queue = share > 0 and math.min(queue + ahead, queue / share) or queue + ahead
  end
  local lead = queue / cal.first_rate
  if cal.firm > v then
    lead = lead + (cal.firm - v)
  end
  if least_s > 0 or lead > hint_cap then
    if lead > hint_cap and lead <= horizon then
      lead = hint_cap * between(0.5, 1)
    end
    lead = math.max(lead, least_s * speed)
  end
  local slot_ms = math.ceil((v + lead) * 1000)
  local serial = lead <= horizon and promise('hint:' .. classes[klass][1], slot_ms) or nil
  if not serial then
    return denied(math.max(least_s, far()), spent)
  end
  class.outstanding = class.outstanding + 1
  local seconds = slot_ms / 1000 - v
  if speed ~= 1 then
    seconds = told(seconds)
  end
  return { code = 'hint', at_ms = slot_ms, serial = serial, told = math.max(seconds, least_s), spent = spent }
end

local function firm_slot(klass)
  local v = cal.v
  if cal.rate > 0 and cal.firm < v + horizon then
    local slot = math.max(cal.firm, v) + 1 / cal.first_rate
    local slot_ms = math.ceil(slot * 1000)
    local serial = promise('firm', slot_ms)
    if serial then
      cal.firm = slot
      return { code = 'firm', at_ms = slot_ms, serial = serial, told = told(slot_ms / 1000 - v) }
    end
  end
  return hint(klass, 0, false)
end

local function spent_key(ticket)
  local name = ticket.issuer .. ':' .. math.floor(ticket.at_ms / MINUTE_MS)
  return prefix .. ':spent:' .. name, name
end

-- Mark a ticket used; false if it was used before.
local function spend(ticket)
  if ticket.serial >= MOST_SERIALS then
    return false
  end
  local key, name = spent_key(ticket)
  if redis.call('SETBIT', key, ticket.serial, 1) == 1 then
    return false
  end
  redis.call('EXPIRE', key, GARBAGE_S)
  redis.call('ZADD', prefix .. ':spent', math.floor(ticket.at_ms / MINUTE_MS), name)
  redis.call('EXPIRE', prefix .. ':spent', GARBAGE_S)
  return true
end

local function is_spent(ticket)
  return ticket.serial >= MOST_SERIALS or redis.call('GETBIT', (spent_key(ticket)), ticket.serial) == 1
end

local function is_held(ticket)
  local is_ours = ticket.issuer == cal.issuer or (ticket.issuer == cal.former and ticket.kind == 'firm')
  if not is_ours or math.floor(ticket.at_ms / BUCKET_MS) < cal.settled then
    return false
  end
  return cal.v <= ticket.at_ms / 1000 + cal.hold
end

local function is_due(ticket)
  local late = cal.v - ticket.at_ms / 1000
  return 0 <= late and late <= grace and ticket.at_ms >= cal.worthless
end

local function is_early(ticket)
  local ahead = ticket.at_ms / 1000 - cal.v
  return 0 < ahead and ahead <= horizon + 1
end

local function keep(ticket, class, name)
  if not is_held(ticket) then
    return false
  end
  if ticket.issuer == cal.former then -- its refill is set aside, and nothing else is known of it
    return true
  end
  local bucket = math.floor(ticket.at_ms / BUCKET_MS)
  local kind = ticket.kind == 'firm' and 'firm' or 'hint:' .. name
  local kept = get(kind .. ':kept', bucket) + 1
  put(kind .. ':kept', bucket, kept)
  if ticket.kind == 'hint' then
    class.outstanding = math.max(0, class.outstanding - 1)
    return true
  end
  local reserved = get('reserved', bucket)
  if reserved > 0 and reserved > get(kind .. ':issued', bucket) - kept then
    put('reserved', bucket, reserved - 1)
    count_reserved(-1)
  end
  return true
end

local function take(klass)
  cal.tokens = cal.tokens - 1
  if is_shared then
    mine[klass].allowance = math.max(0, mine[klass].allowance - 1)
  end
end

local function may_take(klass)
  if not is_shared or mine[klass].allowance >= 1 then
    return true
  end
  for before = 1, klass - 1 do
    if mine[before].outstanding > 0 then
      return false
    end
  end
  return true
end

local function redeem(ticket, klass)
  local ahead = ticket.at_ms / 1000 - cal.v
  if ticket.at_ms < cal.worthless or ahead < -grace or ahead > horizon + 1 then
    return nil
  end
  if ahead > 0 or cal.rate == 0 then
    return { code = 'early', told = speed == 1 and ahead or told(ahead) }
  end
  if not spend(ticket) then
    return nil
  end
  if keep(ticket, mine[klass], classes[klass][1]) and ticket.kind == 'firm' then
    return { code = 'admitted' }
  end
  if cal.tokens >= 1 then
    take(klass)
    return { code = 'admitted' }
  end
  return firm_slot(klass)
end

-- One arrival, with a ticket whose signature is good or without.
local function arrive(ticket, klass)
  local grant = ticket and redeem(ticket, klass)
  if grant then
    return grant
  end
  if cal.tokens >= 1 and cal.rate > 0 and may_take(klass) then
    take(klass)
    return { code = 'admitted', spent = ticket ~= nil }
  end
  return hint(klass, 0, ticket ~= nil)
end

local function give_back(count)
  cal.tokens = math.min(room, cal.tokens + count)
end

local function reserve(ticket, klass)
  if
    ticket
    and ticket.kind == 'firm'
    and cal.rate > 0
    and cal.v >= ticket.at_ms / 1000
    and is_held(ticket)
    and not is_spent(ticket)
  then
    return { code = 'same' }
  end
  local grant = arrive(ticket, klass)
  if grant.code ~= 'admitted' then
    return grant
  end
  local slot_ms = math.floor(cal.v * 1000)
  local serial = promise('firm', slot_ms)
  if not serial then
    give_back(1)
    return denied(far(), grant.spent)
  end
  local bucket = math.floor(slot_ms / BUCKET_MS)
  put('reserved', bucket, get('reserved', bucket) + 1)
  count_reserved(1)
  return { code = 'reserved', at_ms = slot_ms, serial = serial, told = 0, spent = grant.spent }
end

-- A promise for an arrival that may not come in for another reason.
local function hint_only(ticket, klass, least_s)
  if not ticket then
    return hint(klass, least_s, false)
  end
  if is_early(ticket) or (is_due(ticket) and cal.rate == 0) then
    local ahead = math.max(0, ticket.at_ms / 1000 - cal.v)
    return { code = 'early', told = math.max(least_s, told(ahead)) }
  end
  local spent = not (is_due(ticket) and spend(ticket))
  if ticket.kind == 'hint' and not spent then
    keep(ticket, mine[klass], classes[klass][1])
  end
  return hint(klass, least_s, spent)
end

local function set_rate(rate)
  if cal.first_rate == 0 then
    cal.first_rate = rate
  end
  cal.rate = rate
  scale()
  plan_settle()
  cal.tokens = math.min(room, cal.tokens)
end

-- A calendar as this gateway would begin it: as it has seen the last one, if it has, as tickets are in its unit.
local function new_calendar(time)
  local rate = head.seen_rate or head.rate
  local v = cal.v or head.seen_v > 0 and (head.passed_v or head.seen_v) or time
  return {
    v = v, firm = 0, tokens = 0, clock = 0, time = time, born = 0, life = 0, lost = 0, gateways = 0,
    first_rate = head.seen_first_rate or rate, rate = rate, ceiling = head.seen_ceiling or rate,
    configured = head.seen_configured or head.rate, fraction = head.seen_fraction or head.fraction,
    burst = 0, hold = 0, issuer = head.issuer, reserved = 0, controlled = 0, former = head.seen_issuer,
    settled = trunc(v * BUCKETS_PER_S), worthless = trunc(v * 1000), next_settle = 0,
  }
end

-- One that is found empty starts without tokens.
local function begin(time)
  cal = new_calendar(time)
  scale()
  plan_settle()
  if head.full then -- in tests, to begin like the core
    cal.tokens, cal.settled, cal.worthless = cal.burst, 0, 0
  end
end

-- One that is there, maybe written by a version that knew less of it.
local function restore(values, time)
  for index, field in ipairs(SCALARS) do
    cal[field] = tonumber(values[index])
  end
  cal.former, cal.life = cal.former or 0, cal.life or cal.clock
  cal.first_rate, cal.ceiling, cal.configured = cal.first_rate or cal.rate, cal.ceiling or cal.rate, cal.configured or cal.rate
  for field, value in pairs(new_calendar(time)) do
    if not cal[field] then
      cal[field] = value
    end
  end
  scale()
end

-- Refill that was promised stays so.
local function carry_firm()
  cal.firm = math.max(cal.firm, math.min(head.seen_firm, cal.v + horizon))
end

-- A gateway that had seen nothing may have begun this calendar, before one that has seen the last one: then that is
-- what is gone on for. What was set here since then holds.
local function adopt(elapsed)
  local is_other = head.seen_issuer ~= 0 and head.seen_issuer ~= cal.issuer
  if not is_other or cal.former ~= 0 or cal.clock - cal.born >= YOUNG_S then
    return
  end
  cal.former, cal.lost = head.seen_issuer, cal.clock + elapsed
  cal.worthless = math.max(cal.worthless, trunc((head.passed_v or head.seen_v) * 1000))
  if (head.seen_first_rate or 0) > 0 then
    cal.first_rate = head.seen_first_rate
  end
  if cal.ceiling == cal.configured and cal.configured == head.seen_configured then
    cal.rate, cal.ceiling = head.seen_rate, head.seen_ceiling
  end
  if cal.fraction == head.fraction then
    cal.fraction = head.seen_fraction or cal.fraction
  end
  scale()
  plan_settle()
  cal.tokens = math.min(room, cal.tokens)
  carry_firm()
end

-- What a gateway has admitted alone is spent and kept here too.
local function count_used()
  for _, used in ipairs(head.used or {}) do
    local kind, klass = used[1], used[2] + 1
    local ticket = { kind = kind, at_ms = used[3], issuer = used[4], serial = used[5] }
    if mine[klass] and ticket.at_ms >= cal.worthless and spend(ticket) then
      keep(ticket, mine[klass], classes[klass][1])
    end
  end
end

local function read_classes()
  for index, class in ipairs(classes) do
    local fields = { 'outstanding', 'show_rate', 'allowance', 'settled' }
    for position, field in ipairs(fields) do
      fields[position] = field .. ':' .. class[1]
    end
    local stored = redis.call('HMGET', scalar_key, unpack(fields))
    mine[index] = {
      outstanding = tonumber(stored[1] or 0),
      show_rate = tonumber(stored[2] or 1),
      allowance = tonumber(stored[3] or 0),
      settled = tonumber(stored[4] or 0),
    }
  end
end

-- V of this gateway's last reply, and the refill that it has handed out alone since then: that has passed (`seen_v`) and
-- is paid (`paid_v`: up to here at most).
local function catch_up(elapsed)
  advance(elapsed, head.paid_v or head.seen_v)
  if head.seen_v > cal.v then
    cal.v = head.seen_v
    plan_settle()
    settle()
  end
  for index, class in ipairs(mine) do
    if class.settled < cal.settled then -- by gateways that do not know this class
      settle_hints(index, cal.settled)
    end
  end
  carry_firm()
end

-- More than has passed since the caller's last call cannot have passed since anyone's, by the time it was made: it may
-- have lain in a connection that its gateway has given up.
local function read_calendar()
  local time = now()
  local values = redis.call('HMGET', scalar_key, unpack(SCALARS))
  if values[1] then
    restore(values, time)
  else
    begin(time)
  end
  read_classes()
  gap = math.max(0, time - cal.time)
  cal.time = time
  local elapsed = head.now and gap or math.min(gap, LONGEST_STEP_S, (head.since_s or LONGEST_STEP_S) + SLACK_S)
  adopt(elapsed)
  count_used()
  catch_up(elapsed)
end

local function write_calendar()
  local values = {}
  for _, field in ipairs(SCALARS) do
    values[#values + 1] = field
    values[#values + 1] = exact(cal[field])
  end
  for index, class in ipairs(classes) do
    for field, value in pairs(mine[index]) do
      values[#values + 1] = field .. ':' .. class[1]
      values[#values + 1] = exact(value)
    end
  end
  redis.call('HSET', scalar_key, unpack(values))
  redis.call('EXPIRE', scalar_key, GARBAGE_S)
end
