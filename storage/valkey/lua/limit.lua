-- Leaky buckets, one in each of KEYS: calls in the bucket, the time of that count in ms, the ms in which one call
-- leaks. A bucket counts calls instead of time, so that the count stays meaningful when its rate changes.
-- ARGV: the number of calls to count: 1, 0 to count none and only report whether a call would be allowed, or -1 to
-- take a call back. Then for each bucket the ms per call and the maximum number of calls at once. A call is counted
-- in all buckets, or in none if one of them does not allow it. Returns for each bucket the ms to wait, 0 if it allows
-- the call, and the number of calls in it as text, because Redis truncates numbers.
local now = redis.call('TIME')
now = now[1] * 1000 + now[2] / 1000
local calls = tonumber(ARGV[1])

local function read(key, interval, burst)
    local used, at, leak = string.match(redis.call('GET', key) or '', '^(%S+) (%S+) (%S+)$')
    used, at, leak = tonumber(used) or 0, tonumber(at) or now, tonumber(leak) or interval
    -- If the rate has changed, the bucket leaks at the faster of the two, because the time of the change is unknown.
    local left = math.max(0, used - math.max(0, now - at) / math.min(interval, leak))
    -- After a change to a lower rate, the bucket holds at most its burst. After a change to a faster rate, the next
    -- call is always allowed.
    used = math.min(left, interval < leak and burst - 1 or burst)
    local wait = calls < 0 and 0 or (used + 1 - burst) * interval
    -- Up to a hundredth of a millisecond is a rounding error.
    local refused = wait > 0.01
    return {
        key = key, interval = interval, used = used, refused = refused, wait = refused and math.ceil(wait) or 0,
        changed = used < left or interval ~= leak,
    }
end

local buckets, allowed = {}, true
for i, key in ipairs(KEYS) do
    buckets[i] = read(key, tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1]))
    allowed = allowed and not buckets[i].refused
end

local counts = {}
for i, bucket in ipairs(buckets) do
    local counted = allowed and calls or 0
    local used = math.max(0, bucket.used + counted)
    if counted ~= 0 or (bucket.refused and bucket.changed) then
        local value = string.format('%.17g %.17g %.17g', used, now, bucket.interval)
        redis.call('SET', bucket.key, value, 'PX', math.max(1, math.ceil(used * bucket.interval)))
    end
    counts[i] = {bucket.wait, tostring(used)}
end
return counts
