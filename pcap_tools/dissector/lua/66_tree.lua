-- The packet details: common fields, the dialect's own fields with their bytes, and what tracking found.
local ts = ...
if not ts.proto then
    return
end
local story = ts.story
local results, numbers, charsets, fields, experts = ts.results, ts.numbers, ts.charsets, ts.fields, ts.experts
local floor = math.floor

local display = {}
ts.display = display

local WORD = 4294967296

-- A value of up to 64 bits, a number or its digits, as Wireshark's own type.
local function wide(value, signed)
    local digits = numbers.text(value)
    local negative = digits:sub(1, 1) == "-"
    local high, low = 0, 0
    for digit in digits:gmatch("%d") do
        low = low * 10 + tonumber(digit)
        high = high * 10 + floor(low / WORD)
        low = low % WORD
    end
    if negative then
        low = WORD - low
        high = WORD - 1 - high
        if low == WORD then
            low, high = 0, (high + 1) % WORD
        end
    end
    return (signed and Int64 or UInt64).new(low, high)
end

local function add_step(tree, tvb, w, index)
    local step, value = w.layout.steps[index], w.values[index]
    local entry = step.field_entry
    local shape, first = entry.shape, w.firsts[index]
    local range = tvb:range(first, w.lasts[index] - first)
    if shape.sort == "text" then
        tree:add_packet_field(entry.field, range, ENC_UTF_8)
    elseif shape.sort == "bytes" or shape.mask then
        tree:add(entry.field, range)
    else
        local item = tree:add(entry.field, range, shape.long and wide(value, shape.signed) or value)
        local name = not entry.named and step.names and step.names[value]
        if name then
            item:append_text(" (" .. name .. ")")
        end
    end
end

local function range_of(tvb, w, index)
    local first = w.firsts[index]
    return tvb:range(first, w.lasts[index] - first)
end

-- A topic or filter: the bytes themselves where it is text, else the dialect's word for its number.
local function add_text(tree, tvb, w, field, index, text)
    if not text then
        return
    end
    local range = range_of(tvb, w, index)
    if w.layout.steps[index].is_number then
        tree:add(field, range, text)
    else
        tree:add_packet_field(field, range, ENC_UTF_8)
    end
end

local function add_payload(tree, tvb, w)
    if w.payload then
        local range = range_of(tvb, w, w.layout.payload)
        tree:add(fields.payload, range)
        if #w.payload > 0 and charsets.is_readable(w.payload) then
            tree:add_packet_field(fields.payload_text, range, ENC_UTF_8)
        end
    end
end

-- The payload to the dissector that the user named for this topic, or that of JSON if it is.
local function pass_on(tvb, w, pinfo, root)
    local dissector = w.payload and #w.payload > 0 and ts.payload_dissector(w.topic or "", w.payload)
    if dissector then
        dissector:call(range_of(tvb, w, w.layout.payload):tvb(), pinfo, root)
    end
end

local function add_frame(tree, field, frame)
    if frame and frame ~= 0 then
        tree:add(field, frame):set_generated()
    end
end

local function add_time(tree, field, seconds)
    if seconds then
        local sign = seconds < 0 and -1 or 1
        local nanoseconds = floor(sign * seconds * 1e9 + 0.5)
        local whole = floor(nanoseconds / 1e9)
        tree:add(field, NSTime.new(sign * whole, sign * (nanoseconds - whole * 1e9))):set_generated()
    end
end

local function add_ack(tree, frame, is_ack)
    local link = results.link[frame]
    for _, other in ipairs(is_ack and results.candidates[frame] or {}) do
        add_frame(tree, fields.ack_candidate, other)
    end
    if not link then
        return
    elseif is_ack and link < 0 then
        tree:add(fields.ack_quality, results.quality[frame]):set_generated()
    elseif is_ack then
        add_frame(tree, fields.ack_to, link)
        local quality = results.quality[frame] or "exact"
        local is_timed = quality == "exact" or quality == "anchored"
        tree:add(fields.ack_quality, quality):set_generated()
        add_time(tree, is_timed and fields.ack_time or fields.ack_wait, results.after[frame])
    else
        add_frame(tree, fields.ack_in, link)
    end
end

local MOST_SUBSCRIBERS = 1000 -- shown

-- Who has subscribed to a publish, since when, and which forwards came of it.
local function add_subscribers(tree, told)
    for place = 1, math.min(#told.subscribers, MOST_SUBSCRIBERS) do
        local one = told.subscribers[place]
        local branch = tree:add(fields.subscriber, one.endpoint):set_generated()
        for _, subscription in ipairs(one.frames) do
            add_frame(branch, fields.subscribed_in, subscription)
        end
        for _, forward in ipairs(one.forwards) do
            add_frame(branch, fields.forwarded_in, forward)
        end
        if one.missing > 0 then
            branch:add(fields.missing, one.endpoint):set_generated()
        end
    end
end

local function add_publish(tree, frame, left)
    local told = story.of(frame, left or 0)
    if told then
        tree:add(fields.due, told.due):set_generated()
        tree:add(fields.fanout, told.seen):set_generated()
        add_subscribers(tree, told)
    end
end

local function add_tracking(tree, frame, is_ack, later)
    for _, exchange in ipairs(story.exchanges(frame, is_ack)) do
        add_frame(tree, fields.exchange, exchange)
    end
    add_frame(tree, fields.copy_of, results.copy_of[frame])
    add_frame(tree, fields.resend_of, results.resend_of[frame])
    add_ack(tree, frame, is_ack)
    for _, other in ipairs(not is_ack and results.candidates[frame] or {}) do
        add_frame(tree, fields.forward_candidate, other)
    end
    add_frame(tree, fields.forward_of, results.forward_of(frame))
    add_time(tree, fields.forward_time, results.delay[frame])
    add_frame(tree, fields.subscribed_in, results.subscribed_in[frame])
    add_publish(tree, frame, later)
    if results.topic_name[frame] then
        tree:add(fields.topic_name, ts.shown(results.topic_name[frame])):set_generated()
    end
end

local function add_error(tree, tvb, w)
    if w.error then
        local size = w.error_offset < tvb:len() and 1 or 0
        local range = tvb:range(w.error_offset, size)
        tree:add(fields.error, range, w.error):set_generated()
        tree:add(fields.error_offset, range, w.error_offset):set_generated()
    end
end

-- Expert information alone, where nobody asks for a field of ours: it counts whether or not details are shown.
function display.warn(root, tvb, ids)
    local tree = root:add(ts.proto, tvb:range(0, tvb:len()))
    for place = 1, ids and #ids or 0 do
        local id = ids[place]
        if type(id) == "table" then
            tree:add_proto_expert_info(experts[id[1]], id[2])
        else
            tree:add_proto_expert_info(experts[id])
        end
    end
    return tree
end

-- All of it; `ids` are the experts that apply, `later` is as for them.
function display.show(root, tvb, pinfo, dialect, w, frame, ids, later)
    local tree = display.warn(root, tvb, ids)
    tree:append_text(" (" .. dialect.name .. "): " .. (w.message or w.error or ""))
    tree:add(fields.dialect, dialect.name):set_generated()
    tree:add(fields.form, w.form.name):set_generated()
    tree:add(fields.stream, ts.packet.pair(pinfo).stream):set_generated()
    if w.message then
        tree:add(fields.message, w.message):set_generated()
        tree:add(fields.meaning, w.meaning):set_generated()
    end
    local layout = w.layout
    add_text(tree, tvb, w, fields.topic, layout.topic, w.topic)
    add_text(tree, tvb, w, fields.filter, layout.filter, w.filter)
    if w.retain ~= nil then
        tree:add(fields.retain, range_of(tvb, w, layout.retain), w.retain)
    end
    add_payload(tree, tvb, w)
    local own = w.count > 0 and tree:add(dialect.own_field, tvb:range(0, w.stops[w.count]))
    for index = 1, w.count do
        add_step(own, tvb, w, index)
    end
    if w.padding > 0 then
        tree:add(fields.padding, tvb:range(tvb:len() - w.padding, w.padding), w.padding)
    end
    add_error(tree, tvb, w)
    add_tracking(tree, frame, w.meaning == "ack", later)
    pass_on(tvb, w, pinfo, root)
end
