-- KEYS: processes (sorted set, score = when one was last heard of, in ms), what each tells of itself (hash).
-- ARGV: process, what it tells, ms after which one is void, ms after which it is forgotten.
-- Answers 1 if the process was not known, else 0, and what the processes that live tell.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local added = redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[4])) do
    redis.call('ZREM', KEYS[1], gone)
    redis.call('HDEL', KEYS[2], gone)
end
return {added, redis.call('HMGET', KEYS[2], unpack(redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[3], '+inf')))}
