-- Makes the caller the leader of a flight if there is none.
-- KEYS[1]: the flight. ARGV: token, lease in ms. Returns nil if the caller leads now, else the leader's token.
local leader = redis.call('GET', KEYS[1])
if leader then return leader end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return false
