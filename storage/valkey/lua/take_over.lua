-- Claims a stream of a dead process for another one, if it can be continued.
-- KEYS: the stream, its continuation. ARGV: process of the stream as far as the caller knows, '1' if that process is
-- dead, process that claims the stream.
-- Returns {'none'} if the stream cannot be continued, {'moved', value} if another process has it, or if a live one
-- is about to continue it, or {'claimed', value, continuation, ms after which the stream expires}. A value begins
-- with the process of the stream.
local value, continuation = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
if not value then return {'none'} end
local process, rest = string.match(value, '^(%S*)(.*)$')
if process ~= ARGV[1] then return {'moved', value} end
if not continuation then return {'none'} end
if ARGV[2] ~= '1' then return {'moved', value} end
value = ARGV[3] .. rest
local lifetime = redis.call('PTTL', KEYS[1])
redis.call('SET', KEYS[1], value, 'PX', lifetime)
return {'claimed', value, continuation, lifetime}
