-- Which ACK answers which request.
--
-- Each party has a queue of requests to each other one. An ACK with an id, an echo or a nested copy finds
-- its request by that. One without answers the oldest request that its anchors allow: a broker sends the forwards and
-- the ACK of one request in the dialect's fixed order, so the forwards around an ACK say whose it is.
--
-- Quality of a match: exact (one outstanding, sent once), anchored (several, the forwards decide), resent (sent more
-- than once: which send was answered is unknown), queued (several, by order only), none (nothing outstanding).
local ts = ...
local results, queues = ts.results, ts.queues
local find = string.find

local acks = {}
ts.acks = acks

-- A request is sent: its record, and whether this is a resend of it. The record also serves as that of a publish.
function acks.request(queue, m, frame, now, may_resend)
    local before = may_resend and queue.size > 0 and queues.find(queue, m)
    if before then
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
    queues.add(queue, request)
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
    request.queue.answered = request.sends > request.acks and request
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
        if last and fits(ack, last) then -- one more ACK to a resend
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
    queues.drop(queue, chosen)
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
    queues.drop(queue, served)
    queues.restore(queue, guess)
    guess.acks = 0
    results.link[guess.frame] = 0
    settle(served, frame, now, "anchored")
    served.ack_frame, served.ack_at = frame, now
end
