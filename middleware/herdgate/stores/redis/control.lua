-- The rate and the admitted share: set by operators, or by how the workers fare.

local BACKED_OFF = 0.7 -- of the rate, when a worker is over a target
local RAISED = 0.02 -- of the rate that was set, when none is
local EVERY_S = 1

local function is_strained(worker, control)
  local share = (worker.capacity or 0) > 0 and worker.pending / worker.capacity or 0
  return worker.setup_p95_s > control.setup_s or share > control.pending_share
end

-- The factor and the step to change the rate by. A worker that used to report and does not is no reason to raise it: its
-- loop may be too busy for that.
local function change_for(control)
  local step = cal.ceiling * RAISED
  for _, worker in ipairs(workers) do
    if is_strained(report_of(worker), control) then
      return BACKED_OFF, 0
    end
    step = worker.is_silent and 0 or step
  end
  return 1, step
end

-- Additive increase, multiplicative decrease (Chiu and Jain, 1989), once a second for the whole fleet.
local function control_rate()
  local control = head.control
  if not control or cal.rate == 0 or cal.clock - cal.controlled < EVERY_S then
    return
  end
  cal.controlled = cal.clock
  local factor, step = change_for(control)
  local rate = math.min(cal.ceiling, math.max(control.rate_min, cal.rate * factor + step))
  if rate ~= cal.rate then
    set_rate(rate)
  end
end

-- Settings name a rate as well: the last gateway that came with another one wins, and whoever comes with the same
-- leaves what operators have set.
local function obey()
  cal.configured = head.configure or cal.configured
  local rate = head.set_rate or head.configure
  if rate then
    cal.ceiling = rate
    set_rate(rate)
  end
  if head.set_fraction then
    cal.fraction = head.set_fraction
  end
end
