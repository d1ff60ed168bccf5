-- Takes a slot for a stream and, if the stream is a turn, the turn of its conversation.
-- KEYS: running streams of the user (sorted set; the score is the time in ms at which a slot expires), the new
-- stream, then, as far as ARGV has them, the turn of its conversation, the idempotency key, and the run id of the
-- Valkey in which all live processes have registered their streams.
-- ARGV: stream id, process, conversation id, limit, lifetime in ms, fingerprint of the request (empty if there
-- is no idempotency key), '1' if there is a turn, prefix of stream keys, run id of the Valkey in which this process
-- has registered its streams (empty if it has not), then the ids of dead processes.
-- Returns 'ok', or one of 'again' (same request under the idempotency key), 'other' (another request under the
-- key), 'turn' (another turn is running) or 'limit', followed by the ids and values of the streams that are the
-- reason. A value begins with the process of the stream. Returns 'unsure' if Valkey does not know the idempotency
-- key, but may have lost it. That is so, too, if this Valkey has another run id: it is a replica that has taken over
-- with the run id of its primary under the last key, but maybe without the idempotency key.
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local stream, process, conversation, fingerprint = ARGV[1], ARGV[2], ARGV[3], ARGV[6]
local lifetime = tonumber(ARGV[5])
local turn = ARGV[7] == '1' and KEYS[3] or nil
local asked = fingerprint ~= '' and KEYS[#KEYS - 1] or nil
local dead = {}
for i = 10, #ARGV do dead[ARGV[i]] = true end
local function value_of(id) return redis.call('GET', ARGV[8] .. id) or '' end
local function is_dead(value) return dead[string.match(value, '^%S*')] end

if asked then
    local known = redis.call('GET', asked)
    if known then
        local of, id = string.match(known, '^(%S+) (%S+)$')
        local value = value_of(id)
        if value ~= '' and not is_dead(value) then
            return {of == fingerprint and 'again' or 'other', id, value}
        end
    elseif ARGV[9] == '' or redis.call('GET', KEYS[#KEYS]) ~= ARGV[9]
        or string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') ~= ARGV[9] then
        return {'unsure'}
    end
end
if turn then
    local holder = redis.call('GET', turn)
    if holder and not is_dead(value_of(holder)) then return {'turn', holder, value_of(holder)} end
end
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then
    local running = {'limit'}
    for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
        local value = value_of(id)
        if is_dead(value) then
            redis.call('ZREM', KEYS[1], id)
        else
            running[#running + 1] = id
            running[#running + 1] = value
        end
    end
    if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then return running end
end
redis.call('ZADD', KEYS[1], now + lifetime, stream)
redis.call('PEXPIRE', KEYS[1], lifetime)
redis.call('SET', KEYS[2], process .. ' ' .. conversation, 'PX', lifetime)
if turn then redis.call('SET', turn, stream, 'PX', lifetime) end
if asked then redis.call('SET', asked, fingerprint .. ' ' .. stream, 'PX', lifetime) end
return {'ok'}
