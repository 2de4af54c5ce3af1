-- Which subscriptions are active at a broker, and which of them a topic matches.
local ts = ...
local topics = ts.topics

local subscriptions = {}
ts.subscriptions = subscriptions

function subscriptions.new(dialect)
    return {
        rules = dialect.topics,
        copies = dialect.broker.copies,
        has_sessions = dialect.broker.sessions ~= nil,
        filters = {}, -- filter -> { matches, subscribers = { endpoint -> list of frames } }
        known = {}, -- endpoint -> true once it subscribed to anything
        latest = {}, -- endpoint -> its latest subscription, for retained messages
        matched = {}, -- topic -> what `due` gives, until a subscription changes
    }
end

-- One that is sent again is no other, but what is retained may come again.
function subscriptions.add(subs, filter, endpoint, frame, is_resend)
    local entry = subs.filters[filter]
    if not entry then
        entry = { matches = topics.matcher(subs.rules, filter), subscribers = {} }
        subs.filters[filter] = entry
    end
    local frames = entry.subscribers[endpoint]
    if not frames then
        entry.subscribers[endpoint] = { frame }
        subs.matched = {}
    elseif subs.copies == "per-subscription" and not is_resend then
        frames[#frames + 1] = frame
        subs.matched = {}
    end
    subs.known[endpoint] = true
    subs.latest[endpoint] = { frame = frame, matches = entry.matches }
end

function subscriptions.remove(subs, filter, endpoint)
    local entry = subs.filters[filter]
    if entry and entry.subscribers[endpoint] then
        entry.subscribers[endpoint] = nil
        if next(entry.subscribers) == nil then
            subs.filters[filter] = nil
        end
        subs.matched = {}
    end
end

-- The broker refused what was asked for in this frame.
function subscriptions.refuse(subs, filter, endpoint, frame)
    local entry = subs.filters[filter]
    local frames = entry and entry.subscribers[endpoint]
    for place = frames and #frames or 0, 1, -1 do
        if frames[place] == frame then
            table.remove(frames, place)
            subs.matched = {}
        end
    end
    if frames and not frames[1] then
        subscriptions.remove(subs, filter, endpoint)
    end
end

-- Who gets a message on this topic: { total, frames = { endpoint -> the SUBSCRIBE frame of each copy } }.
function subscriptions.due(subs, topic)
    local due = subs.matched[topic]
    if due then
        return due
    end
    due = { total = 0, frames = {}, may_be_away = subs.has_sessions }
    for _, entry in pairs(subs.filters) do
        if entry.matches(topic) then
            for endpoint, frames in pairs(entry.subscribers) do
                local mine = due.frames[endpoint] or {}
                due.frames[endpoint] = mine
                for _, frame in ipairs(frames) do
                    if subs.copies ~= "per-subscriber" or not mine[1] then
                        mine[#mine + 1] = frame
                        due.total = due.total + 1
                    elseif frame < mine[1] then
                        mine[1] = frame
                    end
                end
            end
        end
    end
    for _, frames in pairs(due.frames) do
        table.sort(frames)
    end
    subs.matched[topic] = due
    return due
end
