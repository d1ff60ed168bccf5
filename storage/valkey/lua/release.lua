-- Releases the slot of a stream. Keys that another stream holds by now are not changed.
-- KEYS: as for admit.lua. ARGV: stream id, ms for which the stream can still be read, '1' if there is a turn,
-- '1' if there is an idempotency key, and the process that releases the slot if the stream is durable (else empty).
-- A durable stream that another process has taken over is not changed. Otherwise its continuation is deleted.
local stream, readable = ARGV[1], tonumber(ARGV[2])
local function keep(key)
    if readable > 0 then redis.call('PEXPIRE', key, readable) else redis.call('DEL', key) end
end
if ARGV[5] ~= '' then
    local value = redis.call('GET', KEYS[2])
    if value and string.match(value, '^%S*') ~= ARGV[5] then return 0 end
    redis.call('DEL', KEYS[2] .. ':continuation')
end
redis.call('ZREM', KEYS[1], stream)
keep(KEYS[2])
if ARGV[3] == '1' and redis.call('GET', KEYS[3]) == stream then redis.call('DEL', KEYS[3]) end
if ARGV[4] == '1' then
    local known = redis.call('GET', KEYS[#KEYS])
    if known and string.match(known, '%S+$') == stream then keep(KEYS[#KEYS]) end
end
return 1
