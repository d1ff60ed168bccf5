-- Makes the index of a board ready. KEYS: as in board_put.lua. ARGV: the token of `board_begin`, ms until the index
-- expires or 0. Returns 0 if the index was lost meanwhile.
if redis.call('HGET', KEYS[2], '') ~= ARGV[1] or not redis.call('ZSCORE', KEYS[1], '') then return 0 end
redis.call('HSET', KEYS[2], '', 'ready')
for _, key in ipairs(KEYS) do
    if ARGV[2] == '0' then redis.call('PERSIST', key) else redis.call('PEXPIRE', key, ARGV[2]) end
end
return 1
