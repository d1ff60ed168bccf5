-- Returns what shows which processes are silent: the time in ms, for how many seconds Valkey has run, and for each
-- process the time in ms of its last heartbeat as text, empty if there is none.
-- KEYS: processes, as for beat.lua. ARGV: processes.
local t = redis.call('TIME')
local uptime = string.match(redis.call('INFO', 'server'), 'uptime_in_seconds:(%d+)')
local scores = {}
for i, process in ipairs(ARGV) do scores[i] = redis.call('ZSCORE', KEYS[1], process) or '' end
return {t[1] * 1000 + math.floor(t[2] / 1000), tonumber(uptime), scores}
