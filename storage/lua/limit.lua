-- A leaky bucket. KEYS[1] holds: calls in the bucket, the time of that count in ms, the ms in which one call leaks.
-- The count is in calls, not in time, so that it keeps its meaning when the rate changes.
-- ARGV: milliseconds per call, calls that may come at once. Answer: 0 (allowed), or the ms to wait.
local now = redis.call('TIME')
now = now[1] * 1000 + now[2] / 1000
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local used, at, leak = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%S+) (%S+)$')
used, at, leak = tonumber(used) or 0, tonumber(at) or now, tonumber(leak) or interval
-- Of an old and a new rate the faster one leaks, because the time of the change is not known.
local left = math.max(0, used - math.max(0, now - at) / math.min(interval, leak))
-- A lower rate takes no more than its burst away. A faster one allows the next call in any case.
used = math.min(left, interval < leak and burst - 1 or burst)
local function keep(calls)
    local value = string.format('%.17g %.17g %.17g', calls, now, interval)
    redis.call('SET', KEYS[1], value, 'PX', math.max(1, math.ceil(calls * interval)))
end
local wait = (used + 1 - burst) * interval
-- A hundredth of a millisecond is rounding, not haste.
if wait > 0.01 then
    if used < left or interval ~= leak then
        keep(used)
    end
    return math.ceil(wait)
end
keep(used + 1)
return 0
