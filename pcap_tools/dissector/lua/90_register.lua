-- Registration: which dialect a datagram is of, and the dissectors by port, by Decode As and by heuristics.
local ts = ...
if not ts.proto then
    return
end
local proto, settings, results, tracking = ts.proto, ts.settings, ts.results, ts.tracking
local decode, evidence, copies, requests = ts.decode, ts.evidence, ts.copies, ts.requests
local collect_in_time = ts.collect_in_time
local pair, read, statistics, display = ts.parties.pair, ts.messages.read, ts.statistics, ts.display
local floor, has_gui = math.floor, gui_enabled()

-- Tracking is what costs time: `-X lua_script1:tracking=off` does without, for captures of many millions.
local is_tracking = ts.options.tracking ~= "off"
local INTERFACES = 4294967296 -- and more there are not

local function field(name)
    return is_tracking and Field.new(name) or nil -- one field asked for makes Wireshark build all trees
end

-- Where a frame was captured, for finding copies. These need a tree; the one first pass that has none is that of
-- `tshark -2` without a filter, where only the direction is known.
local frame_number = field("frame.number")
local packet_type, interface_index = field("sll.pkttype"), field("sll.ifindex")
local interface_id = field("frame.interface_id")
local ip_id = field("ip.id")
local fragment_id = field("ipv6.fraghdr.ident")

local pubsub -- the dissector of `proto`, known only once everything is registered
local has_tree -- on the first pass: are there fields to ask for?
local has_places -- can the file hold copies? Only cooked captures and files with interfaces can
local is_shown -- on a first pass without windows: does anybody ask for fields of ours? The same for all frames
local first_offset -- of absolute to relative time: differs behind a time reference

function proto.init()
    has_tree, has_places, is_shown, first_offset = nil, nil, nil, nil
    tracking.reset()
    statistics.reset()
end

-- Numbers from Wireshark are floats in Lua 5.3 and later; 3.0 would be shown as such.
local whole = rawget(math, "tointeger") or function(number)
    return number
end

-- In Wireshark: seconds since the first frame, also behind a time reference. Relative times are exact to nanoseconds,
-- absolute ones as doubles are not.
local function time_of(pinfo)
    local relative = pinfo.rel_ts
    local offset = pinfo.abs_ts - relative
    first_offset = first_offset or offset
    local moved = offset - first_offset
    if moved > 1e-5 or moved < -1e-5 then
        return relative + floor(moved * 1e6 + 0.5) / 1e6
    end
    return relative
end

local function pair_of(pinfo)
    return pair(tostring(pinfo.src), whole(pinfo.src_port), tostring(pinfo.dst), whole(pinfo.dst_port))
end

-- -- which dialect ---------------------------------------------------------------------------------------------------

-- The dialect that decodes it without error and says most about it; how well the ports suit goes before all.
local function best_of(candidates, data, length, from, to)
    local best, best_fit, most = nil, -1, 0
    for _, dialect in ipairs(candidates) do
        local w = decode(dialect, data, length)
        if not w.error then
            local fit, bits = evidence.of_ports(dialect, from.port, to.port), evidence.of(w)
            if fit > best_fit or (fit == best_fit and bits > most) then
                best, best_fit, most = dialect, fit, bits
            end
        end
    end
    return best, most
end

local function best_by_ports(candidates, from, to)
    local best, most = candidates[1], -1
    for _, dialect in ipairs(candidates) do
        local fit = evidence.of_ports(dialect, from.port, to.port)
        if fit > most then
            best, most = dialect, fit
        end
    end
    return best
end

local function includes(list, dialect)
    for _, other in ipairs(list) do
        if other == dialect then
            return true
        end
    end
    return false
end

-- All dialects that claim one of the two ports.
local function by_port(from, to)
    local one, other = settings.by_port[to.port], settings.by_port[from.port]
    if not other or not one or one == other then
        return one or other or ts.dialects
    end
    local both = {}
    for _, list in ipairs({ one, other }) do
        for _, dialect in ipairs(list) do
            if not includes(both, dialect) then
                both[#both + 1] = dialect
            end
        end
    end
    return both
end

-- On a port that several dialects use: the one known for an endpoint if it decodes, else the one with most evidence.
local function choose(data, length, from, to)
    local known = to.dialect or from.dialect
    if known and not read(known, data, length).error then
        return known
    end
    local candidates = by_port(from, to)
    if not candidates[1] then
        candidates = ts.dialects
    end
    if not candidates[2] then
        return candidates[1]
    end
    local dialect = best_of(candidates, data, length, from, to)
    if dialect then
        to.dialect, from.dialect = to.dialect or dialect, from.dialect or dialect
    end
    return dialect or known or best_by_ports(candidates, from, to)
end

-- The dialect of a frame: chosen once, the same on later passes.
local function dialect_of(data, length, frame, ends)
    local place = results.dialect[frame]
    if not place then
        place = choose(data, length, ends.from, ends.to).place
        results.dialect[frame] = place
    end
    return ts.dialects[place]
end

-- -- one datagram ----------------------------------------------------------------------------------------------------

local function last_of(first, second, ...)
    if second then -- a tunnel has one for each packet inside the other
        return last_of(second, ...)
    end
    return first and first.value
end

local function find_copy(data, frame, now, pinfo, ends)
    local place
    if has_tree then
        local kind = packet_type()
        local index = kind and interface_index() or interface_id()
        place = (kind and kind.value or -1) * INTERFACES + (index and index.value or -1)
    else
        place = pinfo.p2p_dir
    end
    local id = last_of(ip_id()) or last_of(fragment_id())
    return copies.copy_of(ends.name .. requests.short(data), frame, now, place, id)
end

local function track(dialect, m, data, frame, pinfo, ends)
    if pinfo.in_error_pkt then
        return -- quoted inside an ICMP error: not a datagram
    end
    local now = has_gui and time_of(pinfo) or pinfo.rel_ts
    if has_tree == nil then
        has_tree = frame_number() ~= nil
        has_places = not has_tree or packet_type() ~= nil or interface_id() ~= nil
    end
    if has_places then
        local copy = find_copy(data, frame, now, pinfo, ends)
        if copy then
            return results.mark("copy_of", frame, copy)
        end
    end
    if not m.error then
        tracking.message(dialect, m, frame, now, ends)
    end
end

-- Are there fields of ours to make? Asking takes its time, and on a first pass of tshark the answer is always the same.
local function is_wanted(root, visited)
    if has_gui or visited then
        return root:referenced(pubsub)
    elseif is_shown == nil then
        is_shown = root:referenced(pubsub)
    end
    return is_shown
end

local function dissect(tvb, pinfo, root, wanted)
    collect_in_time()
    local length = tvb:reported_len()
    local data = length > 0 and tvb:raw() or ""
    local frame, visited = whole(pinfo.number), pinfo.visited
    local is_tracked, dialect = is_tracking and not visited, wanted or settings.only
    local ends = (is_tracked or not dialect) and pair_of(pinfo) -- writing addresses as text takes its time
    if not dialect then
        dialect = dialect_of(data, length, frame, ends)
    end
    local m = read(dialect, data, length)
    if is_tracked then
        track(dialect, m, data, frame, pinfo, ends)
    end
    local columns = pinfo.cols
    columns.protocol = dialect.name
    columns.info = ts.info(m, frame, visited)
    if statistics.wanted then
        ends = ends or pair_of(pinfo)
        statistics.take(dialect, m, frame, ends.from.endpoint, ends.to.endpoint)
    end
    local ids = ts.experts_of(m, frame, visited)
    if is_wanted(root, visited) then
        display.show(root, tvb, pinfo, dialect, decode(dialect, data, length), frame, ids)
    elseif ids then
        display.warn(root, tvb, ids)
    end
    return #data
end

function proto.dissector(tvb, pinfo, root)
    return dissect(tvb, pinfo, root)
end

pubsub = Dissector.get("pubsub")

-- For Decode As and `-d udp.port==4000,pubsub_colon`: one more name for each dialect.
local udp_ports = DissectorTable.get("udp.port")
for _, dialect in ipairs(ts.dialects) do
    local alone = Proto("pubsub_" .. dialect.name, "Publish/Subscribe: " .. dialect.name)
    function alone.dissector(tvb, pinfo, root)
        return dissect(tvb, pinfo, root, dialect)
    end
    udp_ports:add_for_decode_as(alone)
end
udp_ports:add_for_decode_as(proto)

-- On other ports: only what is sure, or what decodes at an endpoint that was sure before.
local function recognise(tvb, pinfo)
    local data, length = tvb:raw(), tvb:reported_len()
    local ends = pair_of(pinfo)
    local from, to = ends.from, ends.to
    local known = to.dialect or from.dialect
    if not known or decode(known, data, length).error then
        local bits
        known, bits = best_of(settings.only and { settings.only } or ts.dialects, data, length, from, to)
        if not known or bits < evidence.ENOUGH then
            return nil
        end
    end
    from.dialect, to.dialect = known, known
    return known
end

proto:register_heuristic("udp", function(tvb, pinfo, root)
    if tvb:len() == 0 or not settings.heuristics then
        return false
    end
    local frame = whole(pinfo.number)
    local dialect = ts.dialects[results.dialect[frame]]
    if not dialect then
        if pinfo.visited then
            return false -- what was not recognised at first is not recognised later
        end
        dialect = recognise(tvb, pinfo)
        if not dialect then
            return false
        end
        results.dialect[frame] = dialect.place
    end
    dissect(tvb, pinfo, root, dialect)
    return true
end)

settings.apply()
