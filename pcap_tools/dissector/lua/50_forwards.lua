-- Which forward belongs to which publish, and to which subscription.
--
-- A publish is remembered by its content (topic and payload). A forward belongs to the oldest open publish of the
-- same content that still owes its receiver a copy; else it is a retained message; else nobody subscribed to it.
local ts = ...
local results, subscriptions = ts.results, ts.subscriptions

local forwards = {}
ts.forwards = forwards

local MOST_KEPT = 512 -- publishes in each of two generations
local MOST_ALIKE = 64 -- open ones of the same content
local LATE = 3 -- seconds
forwards.LATE = LATE
local MOMENT, HORIZON = 0.050, 30 -- seconds: brokers answer at once; a forward later than that is none of the publish's

function forwards.new()
    return { recent = {}, older = {}, count = 0, retained = {}, spare = false }
end

-- A publish reaches the broker. `request` is its record among the requests, if it is to be acknowledged; the same
-- record then serves as that of the publish. Publishes of the same content are linked from the newest to the older
-- ones; whole generations are forgotten, never single ones.
function forwards.publish(state, content, topic, frame, now, due, retain, request, is_resend)
    local publish, total = request, due.total
    if is_resend then -- it may be served again: what the first send still owed is owed by this one
        request.left = 0
        publish = { frame = frame, time = now, last = frame, got = false, queue = request.queue, resend_of = request }
    elseif not publish then
        publish = { frame = frame, time = now, last = frame, got = false }
    end
    publish.due, publish.left = due, total
    local before = state.recent[content] or state.older[content]
    while before and before.left <= 0 do
        before = before.before
    end
    if before then
        local alike = (before.alike or 0) + 1
        if alike <= MOST_ALIKE then
            publish.before, publish.alike = before, alike
        end
    end
    results.kin[frame] = due
    if state.count >= MOST_KEPT then
        state.recent, state.older, state.count = {}, state.recent, 0
    end
    state.recent[content] = publish
    state.count = state.count + 1
    if retain then
        state.retained[topic] = { publish = publish, content = content }
    end
    return publish
end

local function add_forward(publish, frame, now)
    results.after[publish.last] = frame
    local delay = now - publish.time
    results.kin[frame], results.delay[frame] = publish.frame, delay
    if delay >= LATE then
        results.marked[frame] = true
    end
    publish.last = frame
end

local function give(state, publish, endpoint, frame, now)
    local got = publish.got
    if not got then
        got = state.spare or {}
        publish.got, state.spare = got, false
    end
    local count = (got[endpoint] or 0) + 1
    got[endpoint] = count
    local left = publish.left - 1
    publish.left = left
    if left == 0 then
        publish.got = false
        for known in pairs(got) do
            got[known] = 0
        end
        state.spare = got -- for the next one, most likely with the same subscribers
    end
    add_forward(publish, frame, now)
    local frames = publish.due.frames[endpoint]
    if frames then
        results.subscribed_in[frame] = frames[count] or frames[#frames]
    end
    return publish.resend_of or publish
end

local function owes(publish, endpoint)
    local frames = publish.due.frames[endpoint]
    return frames and (publish.got and publish.got[endpoint] or 0) < #frames
end

-- The publish of this content that owes the receiver a copy: of several that are but a moment old the first, since
-- brokers work in order, else the latest, since they answer at once. And another one that may be it as well.
local function owing(newest, endpoint, now)
    local found, other, publish = nil, nil, newest
    while publish do
        local age = now - publish.time
        if age > HORIZON then
            break
        elseif publish.left > 0 and owes(publish, endpoint) then
            if not found or age <= MOMENT then
                found, other = publish, found
            end
            if age > MOMENT then
                break
            end
        end
        publish = publish.before
    end
    return found, other
end

local function retained_for(state, subs, content, topic, endpoint)
    local kept, latest = state.retained[topic], subs.latest[endpoint]
    if kept and latest and kept.content == content and latest.frame > kept.publish.frame and latest.matches(topic) then
        return kept.publish, latest
    end
    return nil
end

-- A forward goes to `endpoint`. Gives its publish (of a resend the first send), or nil where none explains it, and
-- whether it may be another's.
function forwards.forward(state, subs, content, topic, endpoint, frame, now)
    local newest = state.recent[content] or state.older[content]
    local publish, other = owing(newest, endpoint, now)
    if publish then
        if other then
            results.mark("candidates", frame, { publish.frame, other.frame })
        end
        return give(state, publish, endpoint, frame, now), other ~= nil
    end
    local kept, latest = retained_for(state, subs, content, topic, endpoint)
    if kept then
        results.kin[frame], results.subscribed_in[frame] = kept.frame, latest.frame
        return nil -- it belongs to the SUBSCRIBE, and anchors no publish
    end
    local due = newest and newest.due or subscriptions.due(subs, topic)
    local frames = due.frames[endpoint]
    if not frames then
        results.mark("unexpected", frame, subs.known[endpoint] and "filter" or "subscriber")
    else
        results.mark("unexpected", frame, newest and "duplicate" or "publish")
        results.subscribed_in[frame] = frames[1]
    end
    return newest and give(state, newest, endpoint, frame, now)
end

-- A broker sends a forward again, for want of an ACK: it is the same one.
function forwards.again(frame, first)
    local publish = results.forward_of(first)
    if publish then
        results.kin[frame], results.subscribed_in[frame] = publish, results.subscribed_in[first]
    end
end

-- The broker refused a publish: nothing of it is due.
function forwards.refuse(publish)
    publish.due, publish.left = { total = 0, frames = {} }, 0
    results.kin[publish.frame] = publish.due
end
