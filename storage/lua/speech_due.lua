-- KEYS[1]: objects (sorted set, score = when one is to go, in ms). ARGV: how many at most, ms to put them off by.
-- Answers some whose time is over, the longest first.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
for _, object in ipairs(due) do redis.call('ZADD', KEYS[1], now + ARGV[2], object) end
return due
