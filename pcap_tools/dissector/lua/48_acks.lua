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
local find = string.find

local acks = {}
ts.acks = acks

local MOST_OUTSTANDING = 512
local MOST_STALE = 256

-- The queue of what `from` asked of `to`.
function acks.queue(queues, from, to)
    local by_responder = queues[from]
    if not by_responder then
        by_responder = {}
        queues[from] = by_responder
    end
    local queue = by_responder[to]
    if not queue then
        queue = { first = 1, last = 0, size = 0, same = {}, stale = 0, answered = false }
        by_responder[to] = queue
    end
    return queue
end

-- Entries are not taken out of `same` one by one: a Lua table whose keys come and go is rebuilt at every new key.
local function forget_stale(queue)
    local same = {}
    for place = queue.first, queue.last do
        local request = queue[place]
        if not request.done then
            same[request.m.identity] = request
        end
    end
    queue.same, queue.stale = same, 0
end

local function drop(queue, request)
    request.done = true
    queue.size, queue.stale = queue.size - 1, queue.stale + 1
    local first, last = queue.first, queue.last
    while first <= last and queue[first].done do
        queue[first] = false
        first = first + 1
    end
    if first > last then
        first, queue.last = 1, 0 -- empty: the same places again
    end
    queue.first = first
    if queue.stale > MOST_STALE then
        forget_stale(queue)
    end
end

-- A request is sent: its record, and whether this is a resend of it. The record also serves as that of a publish.
function acks.request(queue, m, frame, now, may_resend)
    local before = may_resend and queue.same[m.identity]
    if before and not before.done and before.m.layout.message == m.layout.message then
        before.sends, before.last_frame = before.sends + 1, frame
        results.mark("resend_of", frame, before.frame)
        if m.bytes ~= before.m.bytes then
            results.resend_differs[frame] = true
        end
        return before, true
    end
    local request = {
        frame = frame,
        time = now,
        m = m,
        queue = queue,
        sends = 1,
        acks = 0,
        done = false,
        ack_frame = false,
        ack_at = false,
        due = false, -- from here on as a publish, see forwards
        left = 0,
        closed = true,
        got = false,
        last = false,
        content = false,
    }
    results.link[frame] = 0
    if m.id == 0 then
        results.wants_no_ack[frame] = true
    end
    local last = queue.last + 1
    queue.last, queue.size = last, queue.size + 1
    queue[last] = request
    queue.same[m.identity] = request
    if queue.size > MOST_OUTSTANDING then
        drop(queue, queue[queue.first])
    end
    return request, false
end

-- Does this ACK, by what it carries, fit this request?
local function fits(ack, request)
    local layout, asked = ack.layout, request.m
    if not (layout.answers_any or layout.answers[asked.layout.message]) then
        return false
    elseif layout.acks_by == "order" then
        return true
    elseif layout.acks_by == "echo" then
        return asked.echo == ack.echo
    elseif layout.acks_by == "copy" then
        return find(ack.bytes, asked.bytes, 1, true) ~= nil
    end
    return ack.id ~= nil and asked.id == ack.id
end

local function settle(request, frame, now, quality)
    request.acks = request.acks + 1
    request.queue.answered = request
    results.link[frame], results.after[frame] = request.frame, now - request.time
    if quality ~= "exact" then
        results.quality[frame] = quality
    end
    if request.acks == 1 then
        results.link[request.frame] = frame
        if request.last_frame then
            results.link[request.last_frame] = frame
        end
    end
end

-- Of several outstanding requests: the one whose forwards the broker has just sent, else one that has none to send.
local function anchored(queue, ack, oldest, last_served)
    if last_served and last_served.queue == queue and not last_served.done and fits(ack, last_served) then
        return last_served
    end
    if not oldest.due or oldest.due.total == 0 then
        return nil
    end
    for place = queue.first, queue.last do
        local request = queue[place]
        if not request.done and request.due and request.due.total == 0 and fits(ack, request) then
            return request
        end
    end
    return nil
end

-- The oldest request that fits, and whether there is another one.
local function candidates(queue, ack)
    local oldest = nil
    if queue.size == 0 then
        return nil, false
    end
    for place = queue.first, queue.last do
        local request = queue[place]
        if not request.done and fits(ack, request) then
            if oldest then
                return oldest, true
            end
            oldest = request
        end
    end
    return oldest, false
end

-- An ACK comes: the request that it answers, or nil. `last_served` is the request to which the broker's last forward
-- belonged, where it sends the forwards first.
function acks.answer(queue, ack, frame, now, last_served)
    local chosen, is_ambiguous = candidates(queue, ack)
    if not chosen then
        local last = queue.answered
        if last and last.sends > last.acks and fits(ack, last) then -- one more ACK to a resend
            settle(last, frame, now, "resent")
            return last
        end
        results.link[frame], results.quality[frame] = 0, "none"
        return nil
    end
    local quality = "exact"
    if is_ambiguous and ack.layout.acks_by == "order" then
        local anchor = last_served ~= nil and anchored(queue, ack, chosen, last_served)
        chosen, quality = anchor or chosen, anchor and "anchored" or "queued"
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
    if queue.first > queue.last then
        queue.last = queue.first
    end
    queue.size = queue.size + 1
    queue.same[guess.m.identity] = guess
    results.link[guess.frame] = 0
    settle(served, frame, now, "anchored")
    served.ack_frame, served.ack_at = frame, now
end
