-- Registration: which dialect a datagram is of, and the dissectors by port, by Decode As and by heuristics.
local ts = ...
if not ts.proto then
    return
end
local proto, settings, results, tracking = ts.proto, ts.settings, ts.results, ts.tracking
local decode, evidence, copies, acks = ts.decode, ts.evidence, ts.copies, ts.acks
local floor = math.floor

-- Where a frame was captured, for finding copies. These need a tree; the one first pass that has none is that of
-- `tshark -2` without a filter, where only the direction is known.
local frame_number = Field.new("frame.number")
local packet_type, interface_index = Field.new("sll.pkttype"), Field.new("sll.ifindex")
local interface_id = Field.new("frame.interface_id")
local ip_id = Field.new("ip.id")
local fragment_id = Field.new("ipv6.fraghdr.ident")
local icmp, icmpv6 = Field.new("icmp.type"), Field.new("icmpv6.type")

local pubsub -- the dissector of `proto`, known only once everything is registered
local endpoints -- endpoint -> dialect, once recognised
local has_tree -- on the first pass: are there fields to ask for?
local first_offset -- of absolute to relative time: differs behind a time reference

function proto.init()
    endpoints, has_tree, first_offset = {}, nil, nil
    tracking.reset()
    ts.statistics.reset()
end

-- Seconds since the first frame, also behind a time reference of the user's. Relative times are exact to nanoseconds,
-- absolute ones as doubles are not.
local function time_of(pinfo)
    local relative = pinfo.rel_ts
    local offset = pinfo.abs_ts - relative
    if not first_offset then
        first_offset = offset
    end
    local moved = offset - first_offset
    if moved > 1e-5 or moved < -1e-5 then
        return relative + floor(moved * 1e6 + 0.5) / 1e6
    end
    return relative
end

local from, to = {}, {} -- used again for every packet

local function set_parties(pinfo)
    from.address, from.port = tostring(pinfo.src), floor(pinfo.src_port)
    to.address, to.port = tostring(pinfo.dst), floor(pinfo.dst_port)
    from.endpoint, to.endpoint = from.address .. ":" .. from.port, to.address .. ":" .. to.port
end

-- -- which dialect ---------------------------------------------------------------------------------------------------

-- The dialect that decodes it without error and says most about it; how well the ports suit goes before all.
local function best_of(candidates, data, length)
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

local function best_by_ports(candidates)
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

local function by_port(pinfo)
    local one, other = settings.by_port[floor(pinfo.dst_port)], settings.by_port[floor(pinfo.src_port)]
    if not other or one == other then
        return one or other
    elseif not one then
        return other
    end
    local both = {}
    for _, dialect in ipairs(one) do
        both[#both + 1] = dialect
    end
    for _, dialect in ipairs(other) do
        if not includes(both, dialect) then
            both[#both + 1] = dialect
        end
    end
    return both
end

-- On a port that several dialects use: the one known for an endpoint if it decodes, else the one with most evidence.
local function choose(pinfo, data, length, frame)
    local place = results.dialect[frame]
    if place then
        return ts.dialects[place]
    end
    local candidates = by_port(pinfo)
    if not candidates or not candidates[1] then
        candidates = ts.dialects
    end
    if not candidates[2] then
        return candidates[1]
    end
    set_parties(pinfo)
    local known = endpoints[to.endpoint] or endpoints[from.endpoint]
    if known and includes(candidates, known) and not decode(known, data, length).error then
        results.dialect[frame] = known.place
        return known
    end
    local dialect = best_of(candidates, data, length)
    if dialect then
        endpoints[to.endpoint] = endpoints[to.endpoint] or dialect
        endpoints[from.endpoint] = endpoints[from.endpoint] or dialect
    end
    dialect = dialect or known or best_by_ports(candidates)
    results.dialect[frame] = dialect.place
    return dialect
end

-- -- one datagram ----------------------------------------------------------------------------------------------------

local function last_value(extract)
    local infos = { extract() }
    return #infos > 0 and infos[#infos].value or nil
end

-- Only cooked captures and files with interfaces can hold copies.
local function find_copy(data, frame, now, pinfo)
    if has_tree == nil then
        has_tree = frame_number() ~= nil
    end
    local kind, interface = packet_type(), interface_id()
    local place
    if not has_tree then
        place = pinfo.p2p_dir .. ""
    elseif kind or interface then
        local index = kind and interface_index() or interface
        place = (kind and kind.value or "") .. "/" .. (index and index.value or "")
    else
        return nil
    end
    local key = from.endpoint .. ">" .. to.endpoint .. ">" .. acks.short(data)
    return copies.copy_of(key, frame, now, place, last_value(ip_id) or last_value(fragment_id))
end

local function track(dialect, w, data, frame, pinfo)
    if icmp() or icmpv6() then
        return -- quoted inside an ICMP error: not a datagram
    end
    set_parties(pinfo)
    local now = time_of(pinfo)
    results.copy_of[frame] = find_copy(data, frame, now, pinfo)
    if not results.copy_of[frame] and not w.error then
        tracking.message(dialect, w, data, frame, now, from, to)
    end
end

local function dissect(tvb, pinfo, root, wanted)
    local length = tvb:len()
    local data = length > 0 and tvb:raw() or ""
    local frame, visited = floor(pinfo.number), pinfo.visited
    local dialect = wanted or settings.only or choose(pinfo, data, tvb:reported_len(), frame)
    local w = decode(dialect, data, tvb:reported_len())
    if not visited then
        track(dialect, w, data, frame, pinfo)
    end
    pinfo.cols.protocol = dialect.name
    pinfo.cols.info = ts.info(w, frame, visited)
    ts.statistics.take(dialect, w, frame, pinfo)
    local ids = ts.experts_of(dialect, w, frame, visited)
    if ids or root:referenced(pubsub) then
        ts.display.show(root, tvb, pinfo, dialect, w, frame, ids)
    end
    return length
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
    local data = tvb:raw()
    set_parties(pinfo)
    local known = endpoints[to.endpoint] or endpoints[from.endpoint]
    if known and not decode(known, data, tvb:reported_len()).error then
        return known
    end
    local dialect, bits = best_of(settings.only and { settings.only } or ts.dialects, data, tvb:reported_len())
    return dialect and bits >= evidence.ENOUGH and dialect or nil
end

proto:register_heuristic("udp", function(tvb, pinfo, root)
    if tvb:len() == 0 or not settings.heuristics then
        return false
    end
    local frame = floor(pinfo.number)
    local dialect = ts.dialects[results.dialect[frame]]
    if not dialect then
        if pinfo.visited then
            return false
        end
        dialect = recognise(tvb, pinfo)
        if not dialect then
            return false
        end
        results.dialect[frame] = dialect.place
        endpoints[to.endpoint], endpoints[from.endpoint] = dialect, dialect
        pinfo.conversation = proto
    end
    dissect(tvb, pinfo, root, dialect)
    return true
end)

settings.apply()
