-- When Lua collects its garbage.
--
-- Each packet leaves small pieces behind, Wireshark's as well as ours. Lua collects them once the heap has doubled:
-- behind a million messages that is a hundred megabytes, more than any cache of a processor. Where what stays are few
-- tables, though long ones (one broker, many messages), a collection takes little, and is worth its time much sooner;
-- where it is many tables (thousands of clients) it is not. So it is measured how long one takes, each time the heap
-- has grown by half, and as much garbage is left to gather as makes that a microsecond a datagram.
local ts = ...
local floor, max, min, clock = math.floor, math.max, math.min, os.clock

local GARBAGE = 0.7 -- kilobytes that a datagram leaves
local WORTH = 1e-6 -- seconds of collecting a datagram
local LEAST, GROWTH = 2048, 1.5 -- kilobytes of garbage; times the heap, before it is measured again
local STEP = 10000 -- a collection in one go, not in small steps
local LOOK_AFTER = 4096 -- frames

local limit = 4 * LEAST

local function measure()
    local start = clock()
    collectgarbage("collect")
    local heap = collectgarbage("count")
    local spare = min(max(LEAST, (clock() - start) / WORTH * GARBAGE), heap)
    collectgarbage("setpause", 100 + floor(100 * spare / heap))
    collectgarbage("setstepmul", STEP)
    limit = GROWTH * heap + spare
end

-- To be called now and then: gives the frame at which to call it again.
function ts.collect_in_time(frame)
    if collectgarbage("count") > limit then
        measure()
    end
    return frame + LOOK_AFTER
end
