-- Registration: the dissectors by port, by Decode As and by heuristics, and what they do with a datagram.
local ts = ...
if not ts.proto then
    return
end
local proto, settings, results, tracking, statistics = ts.proto, ts.settings, ts.results, ts.tracking, ts.statistics
local decode, read, display, info, experts_of = ts.decode, ts.messages.read, ts.display, ts.info, ts.experts_of
local packet, places, choice, is_tracking = ts.packet, ts.places, ts.choice, ts.is_tracking
local follow, copy_of, collect_in_time, has_gui = tracking.message, places.copy_of, ts.collect_in_time, gui_enabled()
local with_findings, story = places.with_findings, ts.story
local raw, reported_len, by_ports = Tvb.raw, Tvb.reported_len, choice.by_ports

local next_look = 0 -- at the garbage: a frame
local pubsub -- the dissector of `proto`, known only once everything is registered
local is_shown -- on a first pass without windows: does anybody ask for fields of ours? The same for all frames
local number_of, is_visited, is_quoted, time_of, pair_of, show_line -- of a packet, see `learn`

function proto.init()
    is_shown, next_look = nil, 0
    packet.reset()
    places.reset()
    tracking.reset()
    statistics.reset()
    story.reset()
end

local function learn(pinfo)
    packet.learn(pinfo)
    number_of, is_visited, is_quoted = packet.number, packet.visited, packet.is_quoted
    time_of, pair_of, show_line = packet.time, packet.pair, packet.show
end

local function track(dialect, m, data, frame, pinfo, ends)
    if is_quoted(pinfo) then
        return -- inside an ICMP error: not a datagram
    end
    local now = time_of(pinfo)
    local copy = copy_of(data, frame, now, pinfo, ends)
    if copy then
        results.mark("copy_of", frame, copy)
    elseif not m.error then
        follow(dialect, m, frame, now, ends)
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
    if not number_of then
        learn(pinfo)
    end
    local length = reported_len(tvb)
    local data = length > 0 and raw(tvb) or ""
    local frame, visited = number_of(pinfo), is_visited(pinfo)
    if frame >= next_look then
        next_look = collect_in_time(frame)
    end
    local is_tracked, dialect = is_tracking and not visited, wanted or settings.only
    local ends = (is_tracked or not dialect) and pair_of(pinfo) -- writing addresses as text takes its time
    local m
    if dialect then
        m = read(dialect, data, length)
    else
        dialect, m = by_ports(data, length, frame, ends)
    end
    if is_tracked then
        track(dialect, m, data, frame, pinfo, ends)
    end
    local later = visited and tracking.left(time_of(pinfo))
    local line, is_odd = info(m, frame, later)
    show_line(pinfo, dialect.name, line)
    if statistics.wanted then
        ends = ends or pair_of(pinfo)
        statistics.take(dialect, m, frame, ends.from.endpoint, ends.to.endpoint)
    end
    local ids = with_findings((is_odd or visited) and experts_of(m, frame, later) or nil)
    if is_wanted(root, visited) then
        display.show(root, tvb, pinfo, dialect, decode(dialect, data, length), frame, ids, later)
    elseif ids then
        display.warn(root, tvb, ids)
    end
    return #data
end

proto.dissector = dissect

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

-- On other ports: what was not recognised at first is not recognised later.
proto:register_heuristic("udp", function(tvb, pinfo, root)
    if tvb:len() == 0 or not settings.heuristics then
        return false
    elseif not number_of then
        learn(pinfo)
    end
    local frame = number_of(pinfo)
    local dialect = ts.dialects[results.dialect[frame]]
    if not dialect then
        dialect = not is_visited(pinfo) and choice.by_content(raw(tvb), reported_len(tvb), pair_of(pinfo))
        if not dialect then
            return false
        end
        results.dialect[frame] = dialect.place
    end
    dissect(tvb, pinfo, root, dialect)
    return true
end)

settings.apply()
