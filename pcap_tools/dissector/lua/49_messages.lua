-- What tracking and the columns need of a datagram, worked out once for all datagrams of the same bytes.
--
-- Publish/subscribe traffic repeats itself: a forward is its publish again, ACKs are all alike. Only the packet details
-- need more, and decode anew.
local ts = ...
local decode, requests, topics = ts.decode, ts.requests, ts.topics
local sub = string.sub

local messages = {}
ts.messages = messages

local MOST_KEPT, LONGEST_KEPT = 1024, 512

local kept, count

function messages.reset()
    kept, count = {}, 0
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

-- The keys by which tracking knows a valid message.
local function add_keys(m, w, layout, data, dialect)
    local bytes = w.padding > 0 and sub(data, 1, #data - w.padding) or data
    m.bytes = dialect.has_copies and bytes or requests.short(bytes)
    m.id = value_of(w, layout.id_step)
    if layout.broker_answers or layout.client_answers then
        m.identity = layout.message .. "\0" .. requests.joined(w, layout.identity)
    end
    if layout.echo then
        m.echo = requests.joined(w, layout.echo)
    end
    m.number = value_of(w, layout.number_step)
    m.listens_on = value_of(w, layout.port_step)
    if m.topic then
        m.content = requests.short(m.topic .. "\0" .. (m.payload or ""))
    end
end

local function message_of(dialect, w, data)
    local layout = w.layout
    local m = {
        layout = layout,
        message = w.message,
        meaning = w.meaning,
        topic = w.topic,
        filter = w.filter,
        payload = w.payload,
        retain = w.retain,
        error = w.error,
    }
    if w.error then
        m.error_offset = w.error_offset
    else
        add_keys(m, w, layout, data, dialect)
    end
    local publishes = w.meaning == "publish" or w.meaning == "deliver"
    if publishes and w.topic and dialect.topics.wildcards and topics.has_wildcard(dialect.topics, w.topic) then
        m.has_wildcard = true
    end
    return m
end

-- The message in this datagram; `length` is its true length where the capture cut it short.
function messages.read(dialect, data, length)
    local m = kept[dialect][data]
    if m and length == #data then
        return m
    end
    m = message_of(dialect, decode(dialect, data, length), data)
    if length == #data and length <= LONGEST_KEPT then
        if count >= MOST_KEPT then
            messages.reset()
        end
        kept[dialect][data] = m
        count = count + 1
    end
    return m
end
