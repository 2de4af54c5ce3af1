-- Which datagrams are only copies made by capturing on several interfaces. The twin of pcap_tools/capture/copies.py.
--
-- A copy has the addresses, ports, IP id and bytes of the first one, comes within a millisecond of it, and was seen at
-- another place (packet type and interface). Once a group has two places, a non-zero IP id is proof enough.
local ts = ...
local abs = math.abs

local copies = {}
ts.copies = copies

local WINDOW = 0.001 + 1e-9 -- seconds; the times are doubles
local MOST_GROUPS = 8192

local groups, older, count, began

function copies.reset()
    groups, older, count, began = {}, {}, 0, 0
end

copies.reset()

-- Two generations of groups: what is in neither is older than the window.
local function forget(now)
    if abs(now - began) > WINDOW or count >= MOST_GROUPS then
        groups, older, count, began = {}, groups, 0, now
    end
end

local function belongs(group, now, place, ip_id)
    if abs(now - group.time) > WINDOW then
        return false
    elseif place ~= group.place then
        group.spread = true
        return true
    end
    return group.spread and ip_id ~= nil and ip_id ~= 0
end

-- The frame that this one repeats, or nil. `key` says addresses, ports and bytes, `place` where it was seen.
function copies.copy_of(key, frame, now, place, ip_id)
    forget(now)
    if ip_id then
        key = key .. "\0" .. ip_id
    end
    local group = groups[key] or older[key]
    if group and belongs(group, now, place, ip_id) then
        return group.frame
    end
    groups[key] = { frame = frame, time = now, place = place }
    count = count + 1
    return nil
end
