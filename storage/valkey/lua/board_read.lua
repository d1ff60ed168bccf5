-- Reads ranks of a board. KEYS: as in board_put.lua. ARGV: a user, the first and the last rank, how many users around.
-- Returns nil if the index is not ready. Otherwise the user's rank or 0, the members from the first to the last rank
-- with their scores, and the rank of the first member around the user, followed by these members with their scores.
-- The entry '' has the index 0 in the set, so the index of each user is the rank.
if redis.call('HGET', KEYS[2], '') ~= 'ready' or not redis.call('ZSCORE', KEYS[1], '') then return false end
local around = tonumber(ARGV[4])
local change = redis.call('HGET', KEYS[2], ARGV[1])
local rank = change and redis.call('ZRANK', KEYS[1], change .. ARGV[1]) or 0
local ranked = redis.call('ZRANGE', KEYS[1], ARGV[2], ARGV[3], 'WITHSCORES')
local first, near = 1, {}
if around > 0 and rank > 0 then
    first = math.max(1, rank - around)
    near = redis.call('ZRANGE', KEYS[1], first, rank + around, 'WITHSCORES')
end
return {rank, ranked, first, near}
