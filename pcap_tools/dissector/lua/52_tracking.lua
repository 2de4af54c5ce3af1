-- One message after the other, on the first pass: parties, subscriptions, requests and ACKs, publishes and forwards.
local ts = ...
local results, copies, parties, acks, forwards = ts.results, ts.copies, ts.parties, ts.acks, ts.forwards
local subscriptions, topics, numbers = ts.subscriptions, ts.topics, ts.numbers
local TO, FROM = parties.TO, parties.FROM

local tracking = {}
ts.tracking = tracking

local MOST_NAMES = 16 -- of one topic number

local function place_of(list, wanted)
    for place, duty in ipairs(list or {}) do
        if duty == wanted then
            return place
        end
    end
    return nil
end

for _, dialect in ipairs(ts.dialects) do
    local order = dialect.broker.order.publish
    local ack, forward = place_of(order, "ack"), place_of(order, "forward")
    dialect.forwards_first = ack ~= nil and forward ~= nil and forward < ack
    dialect.acks_first = ack ~= nil and forward ~= nil and ack < forward
    dialect.names_by_client = false
    for _, how in pairs(dialect.broker.forward) do
        for _, field in ipairs(how.fresh or {}) do
            dialect.names_by_client = dialect.names_by_client or field == dialect.topics.number
        end
    end
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            for index, step in ipairs(layout.steps) do
                layout.number_step = step.name == dialect.topics.number and index or layout.number_step
                layout.port_step = step.name == dialect.broker.subscriber_port and index or layout.port_step
            end
            layout.names_topics = layout.message == dialect.topics.named_by
            layout.forward = dialect.broker.forward[layout.message]
            layout.has_number_topic = layout.topic ~= nil and layout.topic == layout.number_step
        end
    end
end

local sessions

function tracking.reset()
    sessions = {}
    results.reset()
    copies.reset()
end

tracking.reset()

local function session_of(dialect)
    local session = sessions[dialect.name]
    if not session then
        session = { parties = parties.new(), queues = acks.new(), brokers = {}, names = {} }
        sessions[dialect.name] = session
    end
    return session
end

local function broker_of(session, dialect, party)
    local key = dialect.broker.forward_from == "ephemeral" and party.address or party.endpoint
    local broker = session.brokers[key]
    if not broker then
        broker = { subs = subscriptions.new(dialect), forwards = forwards.new() }
        session.brokers[key] = broker
    end
    return broker
end

-- -- topic numbers and their names -----------------------------------------------------------------------------------

local function names_of(session, dialect, client)
    local scope = dialect.names_by_client and client.endpoint or ""
    local names = session.names[scope]
    if not names then
        names = {}
        session.names[scope] = names
    end
    return names
end

local function bind_name(session, dialect, client, number, name, broker)
    local names = names_of(session, dialect, client)
    local list = names[number] or {}
    names[number] = list
    for _, known in ipairs(list) do
        if known == name then
            return
        end
    end
    if #list < MOST_NAMES then
        list[#list + 1] = name
        broker.subs.matched = {}
    end
end

-- Under which topic the broker files a message, all names of it, and the content by which its forwards are known.
local function topic_of(session, dialect, w, from, client, forward)
    local topic, names = w.topic or "", nil
    local layout = w.layout
    if dialect.topics.kind == "source-address" then
        return from.address, nil, acks.short(w.payload or "")
    end
    if layout.has_number_topic then
        names = names_of(session, dialect, client)[w.values[layout.number_step]]
        if names and dialect.names_by_client then
            topic = names[#names]
        end
    elseif forward and forward.topic_without then
        topic = topics.without(topic, forward.topic_without)
    end
    return topic, names, acks.short(topic .. "\0" .. (w.payload or ""))
end

-- -- messages by meaning ---------------------------------------------------------------------------------------------

local function request(session, way, w, data, frame, now, from, to)
    local layout = w.layout
    local owed = layout.client_answers
    if way == TO then
        owed = layout.broker_answers
    end
    if not owed then
        return nil, false
    end
    return acks.request(session.queues, from.endpoint .. ">" .. to.endpoint, w, data, frame, now, way == TO)
end

local function on_publish(session, dialect, broker, w, frame, from, asked, is_resend)
    local topic, names, content = topic_of(session, dialect, w, from, from, w.layout.forward)
    if names then
        results.topic_name[frame] = names[#names]
    end
    if is_resend and asked.publish then
        forwards.supersede(asked.publish)
    end
    local due = subscriptions.due(broker.subs, topic, names)
    local keeps = w.retain and dialect.broker.retained ~= "none"
    forwards.publish(broker.forwards, content, topic, frame, due, keeps, asked)
end

local function on_forward(session, dialect, broker, w, frame, to)
    local topic, names, content = topic_of(session, dialect, w, to, to, nil)
    if names then
        results.topic_name[frame] = names[#names]
    end
    local publish = forwards.forward(broker.forwards, broker.subs, content, topic, to.endpoint, frame)
    local served = publish and publish.request
    if served and broker.guess then
        acks.correct(broker.guess, served)
        broker.guess = nil
    end
    broker.last_served = served
end

local function on_ack(session, dialect, way, w, data, frame, now, from, to)
    local broker = broker_of(session, dialect, way == TO and to or from)
    local key = to.endpoint .. ">" .. from.endpoint
    local first, served = dialect.forwards_first, broker.last_served
    local answered = acks.answer(session.queues, key, w, data, frame, now, first, served)
    local layout = w.layout
    if not answered then
        return
    end
    if layout.number_step and layout.number_step <= w.count and answered.name and dialect.topics.named_by then
        local client = way == TO and from or to
        bind_name(session, dialect, client, w.values[layout.number_step], answered.name, broker)
    end
    if way == FROM and answered.publish then
        if dialect.forwards_first then
            answered.publish.closed = true
        elseif dialect.acks_first then
            if broker.acked then
                broker.acked.closed = true -- the broker has gone on to the next one
            end
            broker.acked, broker.guess = answered.publish, answered
        end
    end
end

local function subscriber(w, from)
    local step = w.layout.port_step
    if step and step <= w.count then
        return from.address .. ":" .. numbers.text(w.values[step])
    end
    return from.endpoint
end

-- Takes in one valid message. `from` and `to` are { address, port, endpoint }.
function tracking.message(dialect, w, data, frame, now, from, to)
    local session, layout, meaning = session_of(dialect), w.layout, w.meaning
    local way = parties.direction(session.parties, dialect, layout, from, to)
    if meaning == "ack" then
        return on_ack(session, dialect, way, w, data, frame, now, from, to)
    end
    local broker = broker_of(session, dialect, way == TO and to or from)
    local asked, is_resend = request(session, way, w, data, frame, now, from, to)
    if meaning == "publish" and way == TO then
        on_publish(session, dialect, broker, w, frame, from, asked, is_resend)
    elseif meaning == "publish" or meaning == "deliver" then
        on_forward(session, dialect, broker, w, frame, to)
    elseif meaning == "subscribe" and w.filter and not is_resend then
        subscriptions.add(broker.subs, w.filter, subscriber(w, from), frame)
    elseif meaning == "unsubscribe" and w.filter then
        subscriptions.remove(broker.subs, w.filter, subscriber(w, from))
    end
    if layout.names_topics and w.topic and layout.number_step then
        bind_name(session, dialect, way == TO and from or to, w.values[layout.number_step], w.topic, broker)
    end
end
