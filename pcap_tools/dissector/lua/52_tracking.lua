-- One message after the other, on the first pass: parties, subscriptions, requests and ACKs, publishes and forwards.
local ts = ...
local results, copies, parties, acks, forwards = ts.results, ts.copies, ts.parties, ts.acks, ts.forwards
local subscriptions, topics, numbers, requests = ts.subscriptions, ts.topics, ts.numbers, ts.requests
local messages, queues = ts.messages, ts.queues
local TO, FROM, direction, open = parties.TO, parties.FROM, parties.direction, results.open

local max = math.max

local tracking = {}
ts.tracking = tracking

local DEFAULT_RESEND = ts.limits.default_resend

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
    dialect.has_resends = dialect.client.resend_after ~= nil
    dialect.resend_after = dialect.client.resend_after or DEFAULT_RESEND
    dialect.has_sessions = dialect.broker.sessions ~= nil
    dialect.names_by_client = false
    for _, how in pairs(dialect.broker.forward) do
        for _, field in ipairs(how.fresh or {}) do
            dialect.names_by_client = dialect.names_by_client or field == dialect.topics.number
        end
    end
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            layout.names_topics = layout.message == dialect.topics.named_by
            layout.forward = dialect.broker.forward[layout.message]
            layout.has_number_topic = layout.topic ~= nil and layout.topic == layout.number_step
            local changes = layout.forward and layout.forward.topic_without
            local by_address = dialect.topics.kind == "source-address"
            layout.has_plain_topic = layout.topic and not (layout.has_number_topic or changes or by_address)
        end
    end
end

local sessions
local latest -- when the last message came

-- How many seconds of the capture come after a time.
function tracking.left(time)
    return max(0, latest - time)
end

function tracking.reset()
    sessions, latest = {}, 0
    results.reset()
    copies.reset()
    parties.reset()
    messages.reset()
end

tracking.reset()

-- The IP id of the packet at hand, 0 where it is not known; Wireshark's side gives a better one.
function tracking.ip_id()
    return 0
end

local function session_of(dialect)
    local session = sessions[dialect]
    if not session then
        session = { parties = parties.new(), brokers = {}, names = {} }
        sessions[dialect] = session
    end
    return session
end

local function broker_of(session, dialect, party)
    local key = dialect.broker.forward_from == "ephemeral" and party.address or party
    local broker = session.brokers[key]
    if not broker then
        broker = { subs = subscriptions.new(dialect), forwards = forwards.new() }
        broker.beside, broker.guess = false, false
        session.brokers[key] = broker
    end
    return broker
end

local function add_route(pair, dialect, asked, owed)
    pair.route = {
        dialect = dialect,
        session = session_of(dialect),
        asked = asked, -- what `from` asked of `to`
        owed = owed, -- and the other way round
        receiving = false, -- the broker where it is `to`, once it was
        sending = false,
        other = pair.route, -- of another dialect
    }
end

-- All that tracking needs for messages of a dialect from one party to another, looked up once.
local function route_of(pair, dialect)
    local route = pair.route
    while route and route.dialect ~= dialect do
        route = route.other
    end
    if route then
        return route
    end
    local back, asked, owed = parties.reverse(pair), queues.new(), queues.new()
    if back == pair then -- a party that talks to itself
        owed = asked
    else
        add_route(back, dialect, owed, asked)
    end
    add_route(pair, dialect, asked, owed)
    return pair.route
end

local function receiving_broker(route, party)
    route.receiving = route.receiving or broker_of(route.session, route.dialect, party)
    return route.receiving
end

local function sending_broker(route, party)
    route.sending = route.sending or broker_of(route.session, route.dialect, party)
    return route.sending
end

-- -- topic numbers and their names
-- -----------------------------------------------------------------------------------

-- A number means what its client was told, or said itself when it created the topic.
local function names_of(session, client)
    local names = session.names[client]
    if not names then
        names = {}
        session.names[client] = names
    end
    return names
end

local function bind_name(session, dialect, client, number, name)
    local names = names_of(session, client)
    if dialect.has_sessions or not names[number] then -- elsewhere a number keeps its first name
        names[number] = name
    end
end

-- Under which topic the broker files a message, its name if the topic is a number, and the content by which its
-- forwards are known.
local function topic_of(session, dialect, m, client, is_publish)
    local layout = m.layout
    if layout.has_plain_topic and m.topic then -- it may be absent, where it is optional
        return m.topic, nil, m.content
    elseif layout.has_number_topic then
        local name = nil -- behind the number in a forward: that of its publish
        if is_publish or dialect.names_by_client then
            name = names_of(session, client)[m.number]
        end
        local content = m.content
        if name and dialect.names_by_client then
            content = requests.short(name .. "\0" .. (m.payload or ""))
        end
        return name or m.topic or "", name, content
    elseif dialect.topics.kind == "source-address" then
        return client.address, nil, requests.short(m.payload or "")
    end
    local word = is_publish and layout.forward and layout.forward.topic_without
    if word and m.topic then
        local topic = topics.without(m.topic, word)
        return topic, nil, requests.short(topic .. "\0" .. (m.payload or ""))
    end
    return m.topic or "", nil, m.content or ""
end

-- -- messages by meaning
-- ---------------------------------------------------------------------------------------------

local function on_publish(session, dialect, broker, m, frame, now, from, asked, is_resend)
    local topic, name, content = topic_of(session, dialect, m, from, true)
    if name then
        results.mark("topic_name", frame, name)
    end
    local due = broker.subs.matched[topic] or subscriptions.due(broker.subs, topic)
    local keeps = m.retain and dialect.broker.retained ~= "none"
    forwards.publish(broker.forwards, content, topic, frame, now, due, keeps, asked, is_resend)
end

local function on_forward(session, dialect, broker, m, frame, now, to)
    local topic, name, content = topic_of(session, dialect, m, to, false)
    local served, is_open = forwards.forward(broker.forwards, broker.subs, content, topic, to.endpoint, frame, now)
    if m.layout.has_number_topic then
        name = name or results.topic_name[results.forward_of(frame) or 0]
        if name then
            results.mark("topic_name", frame, name)
        end
    end
    if served and not is_open then
        served.forwarded = true
        if broker.guess and served.queue then
            acks.correct(broker.guess, served)
        end
    end
    broker.guess, broker.beside = false, served and not is_open and served or false
end

local function subscriber(m, from)
    if m.listens_on then
        return from.address .. ":" .. numbers.text(m.listens_on)
    end
    return from.endpoint
end

local function refuse(broker, request, client)
    local asked = request.m
    results.mark("refused", request.frame, true)
    if asked.layout.meaning == "subscribe" and asked.filter then
        subscriptions.refuse(broker.subs, asked.filter, subscriber(asked, client), request.frame)
    elseif request.due then
        forwards.refuse(request)
    end
end

local function on_ack(route, dialect, way, m, frame, now, from, to)
    local broker = way == TO and receiving_broker(route, to) or (route.sending or sending_broker(route, from))
    local anchor = nil
    if way == FROM then
        anchor = dialect.forwards_first and broker.beside or nil
        broker.guess, broker.beside = false, false
    end
    local answered, is_open = acks.answer(route.owed, m, frame, now, tracking.ip_id(), dialect, anchor)
    if not answered then
        return
    end
    if way == FROM and is_open and dialect.acks_first then
        broker.guess = answered
    end
    if m.is_refusal and way == FROM and not is_open then
        refuse(broker, answered, to)
    end
    local asked = answered.m
    local name = m.number and dialect.topics.named_by and (asked.topic or asked.filter)
    if name and not asked.layout.has_number_topic then -- the number as a text is no name
        bind_name(route.session, dialect, way == TO and from or to, m.number, name)
    end
end

-- Takes in one valid message from one party to another.
function tracking.message(dialect, m, frame, now, pair)
    local route, from, to, layout = pair.route, pair.from, pair.to, m.layout
    if not route or route.dialect ~= dialect then
        route = route_of(pair, dialect)
    end
    local session, meaning = route.session, layout.meaning
    open(frame)
    latest = now
    local way = direction(session.parties, dialect, layout, from, to)
    if meaning == "ack" then
        return on_ack(route, dialect, way, m, frame, now, from, to)
    end
    local is_request = way == TO
    local broker = is_request and (route.receiving or receiving_broker(route, to))
        or (route.sending or sending_broker(route, from))
    local asked, is_resend = nil, false
    if is_request and layout.broker_answers or not is_request and layout.client_answers then
        local may_resend = dialect.has_resends and (is_request or dialect.has_sessions)
        local ip_id = may_resend and 0 or tracking.ip_id()
        asked, is_resend = acks.request(route.asked, m, frame, now, ip_id, dialect, may_resend)
    end
    if meaning == "publish" and is_request then
        on_publish(session, dialect, broker, m, frame, now, from, asked, is_resend)
    elseif is_resend and (meaning == "publish" or meaning == "deliver") then
        forwards.again(frame, asked.frame)
        broker.guess, broker.beside = false, false
    elseif meaning == "publish" or meaning == "deliver" then
        on_forward(session, dialect, broker, m, frame, now, to)
    elseif meaning == "subscribe" and m.filter then
        subscriptions.add(broker.subs, m.filter, subscriber(m, from), frame, is_resend)
    elseif meaning == "unsubscribe" and m.filter then
        subscriptions.remove(broker.subs, m.filter, subscriber(m, from))
    end
    if layout.names_topics and m.topic and m.number then
        bind_name(session, dialect, is_request and from or to, m.number, m.topic)
    end
end
