-- KEYS: the flight, what its leader tells. ARGV: token, the words (empty: none), for how many ms they are kept.
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
if ARGV[2] ~= '' then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) end
return 1
