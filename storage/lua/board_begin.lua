-- Begins to build the index of a board. KEYS: as in board_put.lua. ARGV: a token, ms until the keys expire.
-- Returns 1, or 0 if the index is ready or is being built.
local state = redis.call('HGET', KEYS[2], '')
if state and (state ~= 'ready' or redis.call('ZSCORE', KEYS[1], '')) then return 0 end
redis.call('UNLINK', KEYS[1], KEYS[2])
redis.call('HSET', KEYS[2], '', ARGV[1])
redis.call('PEXPIRE', KEYS[2], ARGV[2])
return 1
