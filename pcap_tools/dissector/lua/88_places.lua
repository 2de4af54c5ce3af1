-- Where a frame was captured, and which it is a copy of.
--
-- These fields need a tree. The one first pass that has none is that of `tshark -2` without a filter, where only the
-- direction is known.
local ts = ...
if not ts.proto then
    return
end
local copies, packet, name_of = ts.copies, ts.packet, ts.parties.name

local places = {}
ts.places = places

-- Tracking is what costs time: `-X lua_script1:tracking=off` does without, for captures of many millions.
ts.is_tracking = ts.options.tracking ~= "off"

local INTERFACES = 4294967296 -- and more there are not
local NONE = -1

local function field(name)
    return ts.is_tracking and Field.new(name) or nil -- one field asked for makes Wireshark build all trees
end

local packet_type, interface_index = field("sll.pkttype"), field("sll.ifindex")
local interface_id = field("frame.interface_id")
local ip_id, fragment_id, ipv6_length = field("ip.id"), field("ipv6.fraghdr.ident"), field("ipv6.plen")

local has_fields -- on the first pass: are there any to ask for?
local has_places -- can the file hold copies? Only cooked captures and files with interfaces can

local function value_of(info) -- until `look` knows a quicker one
    return info.value
end

function places.reset()
    has_fields, has_places = nil, nil
end

local function look()
    local place = packet_type() or interface_id()
    has_fields = (place or ip_id() or ipv6_length()) ~= nil
    has_places = place ~= nil or not has_fields
    value_of = place and packet.getter(place, "value") or value_of
end

local function last_of(first, second, ...)
    if second then -- a tunnel has one for each packet inside the other
        return last_of(second, ...)
    end
    return first and value_of(first)
end

local function place_of(pinfo)
    if not has_fields then
        return packet.direction(pinfo)
    end
    local kind = packet_type()
    local index = kind and interface_index() or interface_id()
    return (kind and value_of(kind) or NONE) * INTERFACES + (index and value_of(index) or NONE)
end

-- The frame of which this one is a copy, or nil.
function places.copy_of(data, frame, now, pinfo, ends)
    if has_places == nil then
        look()
    end
    if not has_places then
        return nil
    end
    local id = last_of(ip_id()) or last_of(fragment_id()) or false
    return copies.copy_of(name_of(ends), data, frame, now, place_of(pinfo), id)
end

local comment = Field.new("frame.comment")

local function add_findings(ids, first, ...)
    if first then
        local found = ts.finding_in(tostring(first.value))
        ids[#ids + 1] = found
        return add_findings(ids, ...)
    end
    return ids
end

-- The expert information of the packet at hand, with what its comments tell of findings.
function places.with_findings(ids)
    local first = comment()
    return first and add_findings(ids or {}, comment()) or ids
end

-- The IP id of the packet at hand, 0 where there is none.
function ts.tracking.ip_id()
    if has_places == nil then
        look()
    end
    return has_fields and (last_of(ip_id()) or last_of(fragment_id())) or 0
end
