-- KEYS: as of admit.lua. ARGV: stream id. A turn that another stream holds is left alone.
redis.call('ZREM', KEYS[1], ARGV[1])
if KEYS[2] and redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('DEL', KEYS[2]) end
return 1
