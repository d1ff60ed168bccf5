-- Puts scores into the index of a board.
-- KEYS: the sorted set of scores, the hash of changes. Both have an entry '' as long as they are whole, also while
-- they are built. In the hash it is 'ready', or the token of the process that builds the index. In the set it is first.
-- ARGV: a token, or '' for any state; ms until keys that are being built expire; then for each score the user, its
-- change, and the score by which ranks ascend. A change has 13 hexadecimal digits: its number, and 1 if something was
-- sent with the score, else 0. A member of the set is a change and its user.
-- Returns 'ready', 'building', or 'lost' if there is no index, which then stays away until it is built.
local state = redis.call('HGET', KEYS[2], '')
if not state or (ARGV[1] ~= '' and state ~= ARGV[1]) then return 'lost' end
if not redis.call('ZSCORE', KEYS[1], '') then
    redis.call('UNLINK', KEYS[1], KEYS[2])
    return 'lost'
end
for i = 3, #ARGV, 3 do
    local user, change = ARGV[i], ARGV[i + 1]
    local before = redis.call('HGET', KEYS[2], user)
    -- Scores may arrive in another order than that of their changes. An equal score has the number of the earlier one;
    -- of both, a last digit 1 stays.
    if not before or tonumber(before, 16) < tonumber(change, 16) then
        if before then redis.call('ZREM', KEYS[1], before .. user) end
        redis.call('ZADD', KEYS[1], ARGV[i + 2], change .. user)
        redis.call('HSET', KEYS[2], user, change)
    end
end
if ARGV[1] ~= '' then
    redis.call('PEXPIRE', KEYS[1], ARGV[2])
    redis.call('PEXPIRE', KEYS[2], ARGV[2])
end
return state == 'ready' and 'ready' or 'building'
