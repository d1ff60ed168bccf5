-- Restores the keys of a stream that Valkey has lost. Keys that another stream holds by now are not changed.
-- KEYS: as for admit.lua. ARGV: stream id, process, conversation id, lifetime of the keys in ms, fingerprint of
-- the request (empty if there is no idempotency key), '1' if there is a turn, '1' if the stream is running. A
-- stream that has ended holds no turn and does not count towards the limit.
local stream, lifetime, fingerprint, runs = ARGV[1], tonumber(ARGV[4]), ARGV[5], ARGV[7] == '1'
local t = redis.call('TIME')
local function keep(key, value) redis.call('SET', key, value, 'PX', lifetime, 'NX') end
if runs then
    redis.call('ZADD', KEYS[1], 'NX', t[1] * 1000 + math.floor(t[2] / 1000) + lifetime, stream)
    if redis.call('PTTL', KEYS[1]) < lifetime then redis.call('PEXPIRE', KEYS[1], lifetime) end
    if ARGV[6] == '1' then keep(KEYS[3], stream) end
end
keep(KEYS[2], ARGV[2] .. ' ' .. ARGV[3])
if fingerprint ~= '' then keep(KEYS[#KEYS], fingerprint .. ' ' .. stream) end
return 1
