-- Schedules the removal of objects. An object whose removal is scheduled for a later time keeps that time.
-- KEYS[1]: objects (sorted set; the score is the time of removal in ms). ARGV: ms until the removal, then objects.
local t = redis.call('TIME')
local at = t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1]
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], 'GT', at, ARGV[i]) end
return 1
