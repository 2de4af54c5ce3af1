-- Which ACK answers which request.
--
-- One queue of outstanding requests for each (requester, responder). An ACK with an id, an echo or a nested copy finds
-- its request by that. One without answers the oldest request that its anchors allow: a broker sends the forwards and
-- the ACK of one request in the dialect's fixed order, so the forwards around an ACK say whose it is.
--
-- Quality of a match: exact (one outstanding, sent once), anchored (several, the forwards decide), resent (sent more
-- than once: which send was answered is unknown), queued (several, by order only), none (nothing outstanding).
local ts = ...
local results = ts.results
local byte, find, sub, concat = string.byte, string.find, string.sub, table.concat

local acks = {}
ts.acks = acks

local MOST_OUTSTANDING = 512
local LONG = 256

-- -- what the tables say, made ready ---------------------------------------------------------------------------------

local function set_of(list)
    local set = {}
    for _, name in ipairs(list) do
        set[name] = true
    end
    return set
end

-- The steps that make two sends of a request the same one: no constants, no lengths, nothing a resend may change.
local function identity_steps(layout, may_change)
    local kept = {}
    for index, step in ipairs(layout.steps) do
        local constant = step.kind == "magic" or (step.guards and #step.guards == 1)
        if not constant and not step.counts and not may_change[step.name] then
            kept[#kept + 1] = index
        end
    end
    return kept
end

local function prepare(dialect)
    local may_change, nothing, answered, owed = set_of(dialect.client.may_change), {}, {}, set_of(dialect.client.acks)
    dialect.id_of_acks = nil
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            layout.identity = identity_steps(layout, may_change)
            layout.echo = identity_steps(layout, nothing)
            dialect.has_echoes = dialect.has_echoes or layout.acks_by == "echo"
            if layout.meaning == "ack" then
                layout.answers = set_of(layout.acks)
                layout.answers_any = layout.answers.any or false
                answered[#answered + 1] = layout
                if layout.acks_by_step then
                    dialect.id_of_acks = layout.acks_by
                end
            end
        end
    end

    local function is_answered(message, by_broker)
        for _, ack in ipairs(answered) do
            local can = ack.sender == nil or (ack.sender == "broker") == by_broker
            if can and (ack.answers_any or ack.answers[message]) then
                return true
            end
        end
        return false
    end
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            local asks = layout.meaning ~= "ack"
            layout.is_echoed = dialect.has_echoes
            layout.broker_answers = asks and is_answered(layout.message, true)
            layout.client_answers = asks and owed[layout.message] and is_answered(layout.message, false) or false
            layout.id_step = nil
            for index, step in ipairs(layout.steps) do
                if step.name == dialect.id_of_acks then
                    layout.id_step = index
                end
            end
        end
    end
end

for _, dialect in ipairs(ts.dialects) do
    prepare(dialect)
end

-- -- keys ---------------------------------------------------------------------------------------------------------

local function checksum(text)
    local sum = 0
    for at = 1, #text - 3, 4 do
        local a, b, c, d = byte(text, at, at + 3)
        sum = (sum * 31 + a + b * 7 + c * 61 + d * 509) % 4294967291
    end
    return sum
end

-- A text that stands for a long one, so that what is remembered does not grow with the messages' sizes.
function acks.short(text)
    if #text <= LONG then
        return text
    end
    return sub(text, 1, 96) .. sub(text, -64) .. "\0" .. #text .. "\0" .. checksum(text)
end

local buffer = {}
local function joined(w, steps)
    local count = 0
    for place = 1, #steps do
        local index = steps[place]
        if index <= w.count then
            count = count + 1
            buffer[count] = w.values[index]
        end
    end
    if count == 1 then
        return acks.short(buffer[1] .. "")
    end
    return acks.short(concat(buffer, "\0", 1, count))
end

-- -- queues -------------------------------------------------------------------------------------------------------

function acks.new()
    return {}
end

local function queue_of(queues, key)
    local queue = queues[key]
    if not queue then
        queue = { first = 1, last = 0, size = 0, same = {} }
        queues[key] = queue
    end
    return queue
end

local function drop(queue, request)
    request.done = true
    queue.size = queue.size - 1
    if queue.same[request.identity] == request then
        queue.same[request.identity] = nil
    end
    while queue.first <= queue.last and queue[queue.first].done do
        queue[queue.first] = nil
        queue.first = queue.first + 1
    end
end

-- A request is sent. Gives its record and whether this is a resend of it.
function acks.request(queues, key, w, data, frame, now, may_resend)
    local queue = queue_of(queues, key)
    local layout = w.layout
    local identity = layout.message .. "\0" .. joined(w, layout.identity)
    local before = may_resend and queue.same[identity]
    if before then
        before.sends, before.last_frame = before.sends + 1, frame
        results.resend_of[frame] = before.frame
        if acks.short(data) ~= before.data then
            results.resend_differs[frame] = true
        end
        return before, true
    end
    local id = layout.id_step and layout.id_step <= w.count and w.values[layout.id_step] or nil
    local request = {
        frame = frame,
        last_frame = frame,
        time = now,
        message = layout.message,
        identity = identity,
        data = acks.short(data),
        echo = layout.is_echoed and joined(w, layout.echo),
        id = id,
        name = w.topic or w.filter,
        sends = 1,
        acks = 0,
        queue = queue,
        due = false,
        publish = false,
        done = false,
    }
    results.link[frame] = 0
    if id == 0 then
        results.wants_no_ack[frame] = true
    end
    queue.last = queue.last + 1
    queue[queue.last] = request
    queue.size = queue.size + 1
    queue.same[identity] = request
    if queue.size > MOST_OUTSTANDING then
        drop(queue, queue[queue.first])
    end
    return request, false
end

-- Does this ACK, by what it carries, fit this request?
local function fits(layout, w, data, request)
    if not (layout.answers_any or layout.answers[request.message]) then
        return false
    elseif layout.acks_by == "order" then
        return true
    elseif layout.acks_by == "echo" then
        return request.echo == w.echo_key
    elseif layout.acks_by == "copy" then
        return #request.data <= LONG and find(data, request.data, 1, true) ~= nil
    end
    return layout.acks_by_step <= w.count and request.id == w.values[layout.acks_by_step]
end

local function settle(request, frame, now, quality)
    request.acks = request.acks + 1
    request.queue.answered = request
    results.link[frame], results.quality[frame] = request.frame, quality
    results.ack_time[frame] = now - request.time
    if request.acks == 1 then
        results.link[request.frame], results.ack_time[request.frame] = frame, now - request.time
        results.link[request.last_frame] = frame
    end
end

-- Of several outstanding requests: the one whose forwards the broker has just sent, else one that has none to send.
local function anchored(candidates, last_served)
    for _, request in ipairs(candidates) do
        if request == last_served then
            return request
        end
    end
    if candidates[1].due == 0 then
        return nil
    end
    for _, request in ipairs(candidates) do
        if request.due == 0 then
            return request
        end
    end
    return nil
end

-- An ACK comes. Gives the request that it answers, or nil. `forwards_first` says the order in which the broker sends,
-- `last_served` is the request to which its last forward belonged.
function acks.answer(queues, key, w, data, frame, now, forwards_first, last_served)
    local queue = queue_of(queues, key)
    local layout = w.layout
    w.echo_key = layout.acks_by == "echo" and joined(w, layout.echo) or nil
    results.is_ack[frame] = true
    local candidates = {}
    for place = queue.first, queue.last do
        local request = queue[place]
        if not request.done and fits(layout, w, data, request) then
            candidates[#candidates + 1] = request
        end
    end
    local chosen, quality = candidates[1], "exact"
    if #candidates > 1 and layout.acks_by == "order" then
        quality = "queued"
        local anchor = forwards_first and anchored(candidates, last_served)
        if anchor then
            chosen, quality = anchor, "anchored"
        end
    end
    if not chosen then
        local last = queue.answered
        if last and last.sends > last.acks and fits(layout, w, data, last) then -- one more ACK to a resend
            settle(last, frame, now, "resent")
            return last
        end
        results.link[frame], results.quality[frame] = 0, "none"
        return nil
    end
    if chosen.sends > 1 then
        quality = "resent"
    end
    settle(chosen, frame, now, quality)
    chosen.ack_frame, chosen.ack_at = frame, now
    drop(queue, chosen)
    return chosen
end

-- Where the ACK goes first: the forward after it belongs to `served`, so the ACK was for that request.
function acks.correct(guess, served)
    if guess == served then
        if results.quality[guess.ack_frame] == "queued" then
            results.quality[guess.ack_frame] = "anchored"
        end
        return
    end
    if served.done or guess.queue ~= served.queue or results.quality[guess.ack_frame] ~= "queued" then
        return
    end
    local queue, frame, now = guess.queue, guess.ack_frame, guess.ack_at
    drop(queue, served)
    guess.done, guess.acks = false, 0
    queue.first = queue.first - 1 -- back to its place as the oldest
    queue[queue.first] = guess
    queue.size = queue.size + 1
    queue.same[guess.identity] = guess
    results.link[guess.frame], results.ack_time[guess.frame] = 0, nil
    settle(served, frame, now, "anchored")
    served.ack_frame, served.ack_at = frame, now
end
