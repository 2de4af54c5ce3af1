-- What Wireshark knows of a packet: its number, time, addresses and ports, asked for the quick way.
--
-- `pinfo.src_port` looks for the function behind that name each time, and makes new texts of the names on its way. The
-- functions stand in a table of the class: taken from there once, each takes half the time.
local ts = ...
if not ts.proto then
    return
end
local pair = ts.parties.pair
local floor, has_gui = math.floor, gui_enabled()

local packet = {}
ts.packet = packet

local first_offset -- of absolute to relative time: differs behind a time reference

function packet.reset()
    first_offset = nil
end

-- Numbers from Wireshark are floats in Lua 5.3 and later; 3.0 would be shown as such.
local tointeger = rawget(math, "tointeger")

local function part_of_class(example, part)
    local class = getmetatable(example)
    return type(class) == "table" and rawget(class, part) or nil
end

-- The function that gives this attribute of objects like this one.
local function getter(example, name)
    local getters = part_of_class(example, "__getters")
    return type(getters) == "table" and rawget(getters, name) or function(other)
        return other[name]
    end
end

packet.getter = getter

-- As the one above, for whole numbers.
local function whole(pinfo, name)
    local get = getter(pinfo, name)
    return tointeger and function(other)
        return tointeger(get(other))
    end or get
end

local function setter(columns)
    return part_of_class(columns, "__newindex") or function(other, name, text)
        other[name] = text
    end
end

-- Makes the functions, once there is a packet to ask.
function packet.learn(pinfo)
    packet.number, packet.visited = whole(pinfo, "number"), getter(pinfo, "visited")
    packet.is_quoted, packet.direction = getter(pinfo, "in_error_pkt"), getter(pinfo, "p2p_dir")
    local columns, set = getter(pinfo, "cols"), setter(pinfo.cols)

    function packet.show(other, protocol, info)
        local both = columns(other)
        set(both, "protocol", protocol)
        set(both, "info", info)
    end

    local source, target = getter(pinfo, "src"), getter(pinfo, "dst")
    local sport, dport = whole(pinfo, "src_port"), whole(pinfo, "dst_port")
    local text = part_of_class(pinfo.src, "__tostring") or tostring

    -- The two parties.
    function packet.pair(other)
        return pair(text(source(other)), sport(other), text(target(other)), dport(other))
    end

    local relative, absolute = getter(pinfo, "rel_ts"), getter(pinfo, "abs_ts")

    -- In Wireshark: seconds since the first frame, also behind a time reference. Relative times are exact to
    -- nanoseconds, absolute ones as doubles are not.
    local function time_behind_references(other)
        local seconds = relative(other)
        local offset = absolute(other) - seconds
        first_offset = first_offset or offset
        local moved = offset - first_offset
        if moved > 1e-5 or moved < -1e-5 then
            return seconds + floor(moved * 1e6 + 0.5) / 1e6
        end
        return seconds
    end
    packet.time = has_gui and time_behind_references or relative
end
