-- GCRA (a leaky bucket read as a clock). KEYS[1] holds the time, in ms, at which the bucket is empty again.
-- ARGV: milliseconds per call, calls that may come at once. Answer: 0 (go on), or the ms to wait.
local now = redis.call('TIME')
now = now[1] * 1000 + now[2] / 1000
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local empty = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now) + interval
local wait = empty - interval * burst - now
-- A hundredth of a millisecond is rounding, not haste.
if wait > 0.01 then
    return math.ceil(wait)
end
redis.call('SET', KEYS[1], string.format('%.3f', empty), 'PX', math.ceil(empty - now))
return 0
