-- Records the heartbeat of a process.
-- KEYS: processes (sorted set; the score is the time of the last heartbeat in ms), their reports (hash).
-- ARGV: process, its report, ms after which a process is dead, ms after which its entries are deleted.
-- Returns 1 if the process was unknown, else 0, the reports of all processes that are alive, and the processes whose
-- entries were deleted.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local added = redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
local gone = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[4])
for _, process in ipairs(gone) do
    redis.call('ZREM', KEYS[1], process)
    redis.call('HDEL', KEYS[2], process)
end
local reports = redis.call('HMGET', KEYS[2], unpack(redis.call('ZRANGEBYSCORE', KEYS[1], now - ARGV[3], '+inf')))
return {added, reports, gone}
