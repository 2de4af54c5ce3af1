-- Which forward belongs to which publish, and to which subscription.
--
-- A publish is remembered by its content (topic and payload). A forward belongs to the oldest open publish of the same
-- content that still owes its receiver a copy; else it is a retained message; else nobody subscribed to it.
local ts = ...
local results, subscriptions = ts.results, ts.subscriptions

local forwards = {}
ts.forwards = forwards

local MOST_OPEN = 4096 -- publishes that are remembered at one time,
local MOST_ALIKE = 64 -- and of the same content

function forwards.new()
    return { by_content = {}, ring = {}, place = 0, retained = {} }
end

local function forget(state, publish)
    local list = state.by_content[publish.content]
    if list then
        for index, other in ipairs(list) do
            if other == publish then
                table.remove(list, index)
                break
            end
        end
        if not list[1] then
            state.by_content[publish.content] = nil
        end
    end
end

-- Closed publishes leave when the same content is published again; until then a late forward still finds them.
local function without_closed(list)
    while list[1] and (list[1].closed or #list >= MOST_ALIKE) do
        table.remove(list, 1)
    end
end

-- A publish reaches the broker. `request` is its record among the requests, if it is to be acknowledged.
function forwards.publish(state, content, topic, frame, due, retain, request)
    local total = due.total
    local publish = { frame = frame, content = content, due = due, request = request, left = total }
    publish.closed = total == 0
    results.due[frame] = total
    if request then
        request.due, request.publish = due, publish
    end
    local list = state.by_content[content]
    if not list then
        list = {}
        state.by_content[content] = list
    end
    without_closed(list)
    list[#list + 1] = publish
    state.place = state.place % MOST_OPEN + 1
    local oldest = state.ring[state.place]
    if oldest then
        forget(state, oldest)
    end
    state.ring[state.place] = publish
    if retain then
        state.retained[topic] = publish
    end
    return publish
end

-- A resend may be served again: what the first send still owed is owed by this one.
function forwards.supersede(publish)
    publish.closed = true
end

local function give(publish, endpoint, frame)
    local got = publish.got
    if not got then
        got = {}
        publish.got = got
    end
    local count = (got[endpoint] or 0) + 1
    got[endpoint] = count
    publish.left = publish.left - 1
    if publish.left == 0 then
        publish.closed = true
    end
    results.add_forward(publish.frame, frame)
    local frames = publish.due.frames[endpoint]
    if frames then
        results.subscribed_in[frame] = frames[count] or frames[#frames]
    end
    return publish
end

local function owes(publish, endpoint)
    local frames = publish.due.frames[endpoint]
    return frames and (publish.got and publish.got[endpoint] or 0) < #frames
end

local function retained_for(state, subs, content, topic, endpoint)
    local publish, latest = state.retained[topic], subs.latest[endpoint]
    if publish and latest and publish.content == content and latest.frame > publish.frame and latest.matches(topic) then
        return publish, latest
    end
    return nil
end

-- A forward goes to `endpoint`. Gives its publish, or nil where no publish explains it.
function forwards.forward(state, subs, content, topic, endpoint, frame)
    local list = state.by_content[content]
    for index = 1, list and #list or 0 do
        if not list[index].closed and owes(list[index], endpoint) then
            return give(list[index], endpoint, frame)
        end
    end
    local publish, latest = retained_for(state, subs, content, topic, endpoint)
    if publish then
        results.add_forward(publish.frame, frame)
        results.subscribed_in[frame] = latest.frame
        return nil -- it belongs to the SUBSCRIBE, and anchors no publish
    end
    publish = list and list[#list]
    local is_subscribed = publish and publish.due.frames[endpoint] ~= nil
    if not publish then
        local due = subscriptions.due(subs, topic)
        is_subscribed = due.frames[endpoint] ~= nil
        if is_subscribed then
            results.subscribed_in[frame] = due.frames[endpoint][1]
        end
    end
    if not is_subscribed then
        results.unexpected[frame] = subs.known[endpoint] and "filter" or "subscriber"
    end
    return publish and give(publish, endpoint, frame)
end
