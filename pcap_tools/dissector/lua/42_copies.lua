-- Which datagrams are only copies made by capturing on several interfaces. The twin of pcap_tools/capture/copies.py.
--
-- A copy has the addresses, ports, IP id and bytes of the first one, comes within a millisecond of it, and was seen at
-- another place (packet type and interface). Once a group has two places, a non-zero IP id is proof enough.
--
-- Most files know one place only, and hold no copies: until there is a second one, the last datagrams only wait.
local ts = ...
local abs = math.abs

local copies = {}
ts.copies = copies

local WINDOW = ts.limits.copy_window + 1e-9 -- seconds; the times are doubles
local MOST_GROUPS, MOST_BYTES = ts.limits.copy_groups / 2, 4194304 -- of a generation
local MOST_WAITING = 256

local groups, older, count, bytes, began
local only_place -- so far; nil before the first datagram, false once there are several
local waiting, last_waiting -- a ring of what was seen there, five values each

function copies.reset()
    groups, older, count, bytes, began = {}, {}, 0, 0, 0
    only_place, waiting, last_waiting = nil, {}, 0
end

copies.reset()

-- Two generations of groups: what is in neither is older than the window.
local function forget(now)
    if abs(now - began) > WINDOW or count >= MOST_GROUPS or bytes >= MOST_BYTES then
        groups, older, count, bytes, began = {}, groups, 0, 0, now
    end
end

local function belongs(group, now, place, ip_id)
    if abs(now - group.time) > WINDOW then
        return false
    elseif place ~= group.place then
        group.spread = true
        return true
    end
    return group.spread and ip_id and ip_id ~= 0
end

local function find(name, data, frame, now, place, ip_id)
    forget(now)
    local key = ip_id and name .. ip_id .. ":" .. data or name .. data
    local group = groups[key] or older[key]
    if group and belongs(group, now, place, ip_id) then
        return group.frame
    end
    groups[key] = { frame = frame, time = now, place = place }
    count, bytes = count + 1, bytes + #key
    return nil
end

local function wait(name, data, frame, now, ip_id)
    local at = last_waiting % MOST_WAITING * 5
    waiting[at + 1], waiting[at + 2], waiting[at + 3], waiting[at + 4], waiting[at + 5] = name, data, frame, now, ip_id
    last_waiting = last_waiting + 1
end

local function take_those_that_wait(place)
    for number = math.max(0, last_waiting - MOST_WAITING), last_waiting - 1 do
        local at = number % MOST_WAITING * 5
        find(waiting[at + 1], waiting[at + 2], waiting[at + 3], waiting[at + 4], place, waiting[at + 5])
    end
    waiting, last_waiting = {}, 0
end

-- The frame that this one repeats, or nil. `name` says addresses and ports, `data` the bytes, `place` where it was
-- seen; `ip_id` is false where there is none.
function copies.copy_of(name, data, frame, now, place, ip_id)
    if only_place == nil then
        only_place = place
    elseif only_place and only_place ~= place then
        take_those_that_wait(only_place)
        only_place = false
    end
    if only_place then
        return wait(name, data, frame, now, ip_id)
    end
    return find(name, data, frame, now, place, ip_id)
end
