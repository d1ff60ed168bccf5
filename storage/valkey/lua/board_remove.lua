-- Removes a user from the index of a board. KEYS: as in board_put.lua. ARGV: the user.
local change = redis.call('HGET', KEYS[2], ARGV[1])
if change then
    redis.call('ZREM', KEYS[1], change .. ARGV[1])
    redis.call('HDEL', KEYS[2], ARGV[1])
end
