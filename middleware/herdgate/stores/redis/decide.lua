-- One call of a gateway: its heartbeat, its counts, and the batch of arrivals that wait for the calendar.
--
-- KEYS[1]  the calendar; all other keys of the fleet are called like it, with the same hash tag
-- ARGV[1]  the head, JSON: see herdgate.stores.redis.wire
-- ARGV[2]  the batch: 24 bytes per ticket or per group of newcomers
-- Returns  the head of the reply, numbers in text; 24 bytes per arrival, in the order of the batch; the room at each
--          worker that the gateway names, in text
--
-- The batch comes with firm slots first, then hints, then newcomers, class by class: in that order they are settled.

local CODES = { none = 0, admitted = 1, hint = 2, firm = 3, early = 4, reserved = 5, same = 6 }
local SPENT, FULL = 16, 32
local KINDS = { 'hint', 'firm' }
local ARRIVE, RESERVE, DEFER = 0, 1, 3 -- 2: only a hint is asked for
local FULL_RETRY_S = { 1.0, 2.0 }

redis.call('EXPIRE', prefix .. ':secret', GARBAGE_S)

local reply_key = prefix .. ':reply:' .. gateway
local last = redis.call('HMGET', reply_key, 'sequence', 'head', 'batch', 'rooms')
if tonumber(last[1] or -1) == head.sequence then -- asked again, as the answer did not arrive
  return { last[2], last[3], last[4] }
end

check_order()
read_calendar()
heartbeat()
obey()
control_rate()
give_back(head.given_back)

local function decide(mode, klass, asked, ticket)
  if mode == DEFER then
    return firm_slot(klass), 0
  end
  local worker = choose(asked)
  if mode > RESERVE or not worker then
    local low, high = unpack(FULL_RETRY_S)
    local grant = hint_only(ticket, klass, between(low, high))
    grant.full = not worker
    return grant, 0
  end
  local grant = (mode == ARRIVE and arrive or reserve)(ticket, klass)
  return grant, grant.code == 'admitted' and worker or 0
end

local answers = {}

local function answer(mode, klass, asked, ticket)
  local decided, worker = decide(mode, klass, asked, ticket)
  if worker > 0 then
    grant('worker:' .. workers[worker].name)
  end
  if decided.code == 'admitted' then
    grant('pending')
  end
  local code = CODES[decided.code] + (decided.spent and SPENT or 0) + (decided.full and FULL or 0)
  answers[#answers + 1] =
    struct.pack('>BBxxI4I8d', code, worker, decided.serial or 0, decided.at_ms or 0, decided.told or 0)
end

local batch, position = ARGV[2], 1
while position <= #batch do
  local mode, klass, asked, kind, number, issuer, at_ms
  mode, klass, asked, kind, number, issuer, at_ms, position = struct.unpack('>BBBBI4I4I8xxxx', batch, position)
  if kind == 0 then
    for _ = 1, number do
      answer(mode, klass + 1, asked)
    end
  else
    local ticket = { kind = KINDS[kind], serial = number, issuer = issuer, at_ms = at_ms }
    answer(mode, klass + 1, asked, ticket)
  end
end

if head.leave then
  forget(gateway)
end
cal.gateways = redis.call('ZCARD', alive_key)
local words = {
  cal.v, cal.firm, cal.tokens, cal.rate, cal.first_rate, cal.burst, cal.fraction, cal.issuer,
  cal.gateways, get('granted', 'open'), get('granted', 'pending'), cal.configured, cal.ceiling,
}
for index, word in ipairs(words) do
  words[index] = exact(word)
end
for _, class in ipairs(mine) do
  words[#words + 1] = exact(class.outstanding)
  words[#words + 1] = exact(class.show_rate)
end
write_calendar()
write_hashes()
local told = { table.concat(words, ' '), table.concat(answers), tell_rooms() }
if head.leave then
  return told
end
redis.call('HSET', reply_key, 'sequence', head.sequence, 'head', told[1], 'batch', told[2], 'rooms', told[3])
redis.call('EXPIRE', reply_key, 60)
return told
