-- KEYS[1]: objects (sorted set, score = when one is to go, in ms). ARGV: in how many ms, then objects.
-- One that is to go later than that stays as long.
local t = redis.call('TIME')
local at = t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1]
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], 'GT', at, ARGV[i]) end
return 1
