-- What tracking and the columns need of a datagram, worked out once for all datagrams of the same bytes.
--
-- Publish/subscribe traffic repeats itself: a forward is its publish again, ACKs are all alike. Only the packet details
-- need more, and decode anew.
local ts = ...
local decode, requests, topics, remember = ts.decode, ts.requests, ts.topics, ts.remember
local sub = string.sub

local messages = {}
ts.messages = messages

local MOST_KEPT, LONGEST_KEPT, LONG = 1024, 512, requests.LONG
local NOTHING = { meaning = "nothing" } -- the layout of what was not recognised

for _, dialect in ipairs(ts.dialects) do
    if dialect.topics.wildcards then
        dialect.has_wildcard = remember(function(topic)
            return topics.has_wildcard(dialect.topics, topic)
        end)
    end
end

local kept, count
local last_data, last_dialect, last_message -- a datagram is asked for twice, and most forwards follow at once

function messages.reset()
    kept, count = {}, 0
    last_data = nil
    for _, dialect in ipairs(ts.dialects) do
        kept[dialect] = {}
    end
end

messages.reset()

local function value_of(w, step)
    if step and step <= w.count then
        return w.values[step]
    end
    return nil
end

local function accepts(step, value)
    for _, accepted in ipairs(step.accepted) do
        if value == accepted then
            return true
        end
    end
    return false
end

local PUBLISHES = { publish = true, deliver = true }

-- The fields of common messages at once, and only eight, so that Lua makes the table in its final size: layout, columns
-- and the keys by which tracking knows a message. `line` is for the Info column, `bytes` tell a changed resend.
local function message_of(dialect, w, data)
    local layout, topic, payload = w.selected and w.layout or NOTHING, w.topic, w.payload
    local content = topic and (payload and topic .. "\0" .. payload or topic)
    local m = {
        layout = layout,
        topic = topic,
        payload = payload,
        retain = w.retain,
        content = content and #content > LONG and requests.short(content) or content,
        identity = false,
        line = false,
        bytes = w.padding > 0 and sub(data, 1, #data - w.padding) or data,
    }
    if w.filter then
        m.filter = w.filter
    end
    if w.error then
        m.error, m.error_offset, m.is_odd = w.error, w.error_offset, true
        return m
    end
    if layout.broker_answers or layout.client_answers then
        m.identity = layout.content_is_identity and m.content or requests.joined(w, layout.identity)
    end
    if #data > LONG and not dialect.has_copies then
        m.bytes = requests.short(m.bytes)
    end
    if layout.has_keys then
        m.id, m.number = value_of(w, layout.id_step), value_of(w, layout.number_step)
        m.listens_on = value_of(w, layout.port_step)
        m.echo = layout.echo and requests.joined(w, layout.echo)
    end
    local code = layout.code
    if code and code <= w.count and layout.steps[code].accepted then
        m.is_refusal = not accepts(layout.steps[code], w.values[code])
        m.is_odd = m.is_refusal
    end
    if topic and dialect.has_wildcard and PUBLISHES[layout.meaning] and dialect.has_wildcard(topic) then
        m.has_wildcard, m.is_odd = true, true
    end
    return m
end

-- The message in this datagram; `length` is its true length where the capture cut it short.
function messages.read(dialect, data, length)
    if length ~= #data or length > LONGEST_KEPT then
        return message_of(dialect, decode(dialect, data, length), data)
    elseif data == last_data and dialect == last_dialect then
        return last_message
    end
    local m = kept[dialect][data]
    if not m then
        m = message_of(dialect, decode(dialect, data, length), data)
        if count >= MOST_KEPT then
            messages.reset()
        end
        kept[dialect][data] = m
        count = count + 1
    end
    last_data, last_dialect, last_message = data, dialect, m
    return m
end
