-- Returns objects that are due for removal, the longest due first, and postpones them.
-- KEYS[1]: objects (sorted set; the score is the time of removal in ms). ARGV: maximum number of objects, ms by
-- which they are postponed.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
for _, object in ipairs(due) do redis.call('ZADD', KEYS[1], now + ARGV[2], object) end
return due
