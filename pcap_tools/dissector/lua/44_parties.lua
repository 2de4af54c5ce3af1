-- Who is the broker? Whoever receives subscriptions and sends what only brokers send; else the ports say it.
local ts = ...

local parties = {}
ts.parties = parties

local ENOUGH_VOTES = 1000
local TO, FROM = "to the broker", "from the broker"
parties.TO, parties.FROM = TO, FROM

for _, dialect in ipairs(ts.dialects) do
    dialect.broker_ports, dialect.client_ports = {}, {}
    for role, ports in pairs(dialect.ports) do
        for _, port in ipairs(ports) do
            dialect[role == "broker" and "broker_ports" or "client_ports"][port] = true
        end
    end
end

local hosts -- by address: by port the party there, and by another address the pair seen last with it
local pair_count, stream_count -- a stream is two pairs, one for each direction

function parties.reset()
    hosts, pair_count, stream_count = {}, 0, 0
end

parties.reset()

local function host_at(address)
    local host = hosts[address]
    if not host then
        host = {}
        hosts[address] = host
    end
    return host
end

-- The one table for an address and port: { address, port, endpoint }.
local function party_at(address, port)
    local host = host_at(address)
    local party = host[port]
    if not party then
        party = { address = address, port = port, endpoint = address .. ":" .. port, pairs = {} }
        host[port] = party
    end
    return party
end

local function other_pair(source, sport, target, dport)
    local from, to = party_at(source, sport), party_at(target, dport)
    local pair = from.pairs[to]
    if not pair then
        pair_count = pair_count + 1
        local back = to.pairs[from]
        local stream = back and back.stream or stream_count
        stream_count = back and stream_count or stream_count + 1
        pair = { number = pair_count, sport = sport, dport = dport, from = from, to = to, route = false }
        pair.stream = stream
        from.pairs[to] = pair
    end
    hosts[source][target] = pair
    return pair
end

-- The one table for two parties, in this direction: { from, to }, and what tracking keeps of them. Found by the two
-- addresses alone where the ports are the last ones seen between them, which they mostly are.
function parties.pair(source, sport, target, dport)
    local host = hosts[source]
    local pair = host and host[target]
    if pair and pair.sport == sport and pair.dport == dport then
        return pair
    end
    return other_pair(source, sport, target, dport)
end

-- The same two in the other direction.
function parties.reverse(pair)
    local from, to = pair.from, pair.to
    return parties.pair(to.address, to.port, from.address, from.port)
end

-- A text for a pair, unlike any other's.
function parties.name(pair)
    pair.name = pair.name or pair.number .. ":"
    return pair.name
end

-- `brokers` counts the evidence for each party, `hosts` for each address.
function parties.new()
    return { brokers = {}, hosts = {} }
end

local function vote(known, party)
    local votes = known.brokers[party] or 0
    if votes < ENOUGH_VOTES then
        known.brokers[party], known.hosts[party.address] = votes + 1, true
    end
end

-- Does the broker pass a publish on under the same name?
local function is_passed_on(dialect, layout)
    local how = dialect.broker.forward[layout.message]
    return layout.meaning == "publish" and (not how or how.same_bytes or how.becomes == layout.message)
end

-- What a message itself says about its direction.
local function told(dialect, layout)
    local sender = layout.sender
    if sender == "broker" then
        return FROM
    elseif sender and not is_passed_on(dialect, layout) then
        return TO
    elseif layout.meaning == "subscribe" or layout.meaning == "unsubscribe" then
        return TO
    elseif layout.meaning == "deliver" then
        return FROM
    end
    return nil
end

for _, dialect in ipairs(ts.dialects) do
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            layout.way = told(dialect, layout)
        end
    end
end

local function by_ports(dialect, sport, dport)
    local broker_ports = dialect.broker_ports
    if broker_ports[dport] and not broker_ports[sport] then
        return TO
    elseif broker_ports[sport] and not broker_ports[dport] then
        return FROM
    end
    return nil
end

-- Which way a message goes. A publish between strangers is taken for one to the broker.
function parties.direction(known, dialect, layout, from, to)
    local way = layout.way
    if way == TO then
        vote(known, to)
        return TO
    elseif way == FROM then
        vote(known, from)
        return FROM
    end
    local source, target = known.brokers[from], known.brokers[to]
    if source and target then
        return target >= source and TO or FROM
    elseif target then
        return TO
    elseif source then
        return FROM
    elseif dialect.broker.forward_from == "ephemeral" and known.hosts[from.address] then
        return FROM
    end
    return by_ports(dialect, from.port, to.port) or (layout.meaning == "ack" and FROM or TO)
end
