-- Begins to build the index of a board. KEYS: as in board_put.lua. ARGV: a token, ms until the keys expire.
-- Returns 1, or 0 if the index is ready or is being built.
if redis.call('HEXISTS', KEYS[2], '') == 1 and redis.call('ZSCORE', KEYS[1], '') then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('ZADD', KEYS[1], '-inf', '')
redis.call('HSET', KEYS[2], '', ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
