-- Ends a flight, unless another stream leads it, and publishes its result.
-- KEYS: the flight, the result of the leader. ARGV: token, the result (empty for none), its lifetime in ms.
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
if ARGV[2] ~= '' then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) end
return 1
