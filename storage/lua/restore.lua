-- Sets the keys of a stream again that Valkey has lost; what another stream holds by now is left alone.
-- KEYS: as of admit.lua. ARGV: stream id, process, conversation id, ms for which the keys stay, fingerprint of the
-- request (empty: no key that it was asked for under), '1' where there is a turn, '1' while the stream runs: one
-- that has ended has no turn and does not count.
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
