-- GCRA (a leaky bucket read as a clock). KEYS[1] holds the time, in ms, at which the bucket is empty again.
-- ARGV: milliseconds per call, calls that may come at once. Answer: 0 (go on), or the ms to wait.
local now = redis.call('TIME')
now = now[1] * 1000 + now[2] / 1000
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local function keep(empty)
    redis.call('SET', KEYS[1], string.format('%.3f', empty), 'PX', math.ceil(empty - now))
end
local stored, full = tonumber(redis.call('GET', KEYS[1]) or now), now + interval * burst
-- More than full: it was stored when the rate was lower.
local empty = math.max(math.min(stored, full), now) + interval
local wait = empty - full
-- A hundredth of a millisecond is rounding, not haste.
if wait > 0.01 then
    if stored > full then
        keep(full)
    end
    return math.ceil(wait)
end
keep(empty)
return 0
