-- KEYS: streams of the user (sorted set, score = when its place is void), turn of the conversation (optional)
-- ARGV: stream id, limit, lifetime in ms. Answers 'ok', 'turn' or 'limit'.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local lifetime = tonumber(ARGV[3])
if KEYS[2] and redis.call('EXISTS', KEYS[2]) == 1 then return 'turn' end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 'limit' end
redis.call('ZADD', KEYS[1], now + lifetime, ARGV[1])
redis.call('PEXPIRE', KEYS[1], lifetime)
if KEYS[2] then redis.call('SET', KEYS[2], ARGV[1], 'PX', lifetime) end
return 'ok'
