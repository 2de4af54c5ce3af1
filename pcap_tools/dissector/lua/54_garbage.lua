-- When Lua collects its garbage.
--
-- Each packet leaves small pieces behind, Wireshark's as well as ours. Lua collects them once the heap has doubled, and
-- then as slowly as it may: behind a million messages that is a hundred megabytes, more than any cache of a processor,
-- and this is what takes time. What stays are few tables, though long ones, so it is cheap to collect after every two
-- megabytes: with a pause that depends on the size of the heap, and each collection in one go.
local ts = ...
local floor, max, min = math.floor, math.max, math.min

local GARBAGE = 2048 -- kilobytes before a collection
local SHORTEST, LONGEST = 103, 200 -- pauses, in percent of the heap; 200 is what Lua itself takes
local STEP = 10000 -- percent of what is allocated meanwhile
local LOOK_AFTER = 4096 -- datagrams

local seen = 0

-- To be called for each datagram.
function ts.keep_heap_small()
    seen = seen + 1
    if seen > LOOK_AFTER then
        seen = 0
        local pause = 100 + floor(100 * GARBAGE / collectgarbage("count"))
        collectgarbage("setpause", min(max(pause, SHORTEST), LONGEST))
        collectgarbage("setstepmul", STEP)
    end
end
