-- A leaky bucket. KEYS[1] holds: calls in the bucket, the time of that count in ms, the ms in which one call
-- leaks. The bucket counts calls instead of time, so that the count stays meaningful when the rate changes.
-- ARGV: ms per call, maximum number of calls at once, number of calls to count: 1 (default), or 0 to count none and
-- only report whether a call would be allowed. Returns the ms to wait, 0 if the call is allowed, and the number
-- of calls in the bucket as text, because Redis truncates numbers.
local now = redis.call('TIME')
now = now[1] * 1000 + now[2] / 1000
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local used, at, leak = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) (%S+) (%S+)$')
used, at, leak = tonumber(used) or 0, tonumber(at) or now, tonumber(leak) or interval
-- If the rate has changed, the bucket leaks at the faster of the two, because the time of the change is unknown.
local left = math.max(0, used - math.max(0, now - at) / math.min(interval, leak))
-- After a change to a lower rate, the bucket holds at most its burst. After a change to a faster rate, the next
-- call is always allowed.
used = math.min(left, interval < leak and burst - 1 or burst)
local function keep(calls)
    local value = string.format('%.17g %.17g %.17g', calls, now, interval)
    redis.call('SET', KEYS[1], value, 'PX', math.max(1, math.ceil(calls * interval)))
end
local wait = (used + 1 - burst) * interval
-- Up to a hundredth of a millisecond is a rounding error.
if wait > 0.01 then
    if used < left or interval ~= leak then
        keep(used)
    end
    return {math.ceil(wait), tostring(used)}
end
local calls = tonumber(ARGV[3] or 1)
if calls > 0 then
    keep(used + calls)
end
return {0, tostring(used + calls)}
