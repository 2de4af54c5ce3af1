-- Which ACK answers which request: the pairing of docs/checking.md, told as the packets come.
--
-- Each party has a queue of requests to each other one. An ACK with an id, an echo or a nested copy finds its request
-- by that. One without answers the oldest request that its anchors allow: a broker sends the forwards and the ACK of
-- one request in the dialect's fixed order, so the forward beside an ACK says whose it is.
--
-- Quality of a match: exact (one outstanding, sent once), anchored (several, the forwards decide), resent (sent more
-- than once: which send was answered is unknown), queued (several, and nothing decides: the ACK names each of them),
-- none (nothing outstanding).
local ts = ...
local results, queues = ts.results, ts.queues
local find, abs, max, min = string.find, math.abs, math.max, math.min

local acks = {}
ts.acks = acks

-- Seconds; the same as the checker's (spark_analysis/checker/kernels/pairing.py).
local DOUBLED = 0.010 -- the network's copy of a datagram comes within this time
local DOUBLED_BY_ID = 0.5 -- where the IP id tells
local REPEATED = 0.050 -- the same again so soon after its ACK is no new request
local FRESH = 0.050 -- what was sent so lately is more likely answered now than what was sent long ago
local COMPARABLE = 3 -- times as long a wait is about as long
local TWICE = 0.020 -- an ACK that comes once more comes soon
-- In times of the dialect's resend:
local OVER = 6 -- nothing is sent again, or answered, any more
local PATIENCE = 1.5 -- a request whose last send is older waits for no ACK

-- -- requests
-- --------------------------------------------------------------------------------------------------------

-- Is this message, the same as a request, another send of it, or one that the network made two of?
local function repeats(queue, request, m, now, ip_id, resend, may_resend)
    local gap = now - request.last_time
    if ip_id > 0 and request.ip_id == ip_id and gap < DOUBLED_BY_ID then
        return true
    elseif not may_resend or m.id == 0 or gap > OVER * resend then
        return false
    elseif not request.answered or m.id then
        return true
    elseif queue.latest ~= request then
        return false -- the sender has gone on to something else
    end
    return (now - request.ack_at < REPEATED and gap < 0.8 * resend) or (gap > 0.9 * resend and gap < 1.2 * resend)
end

-- The same message again, in a dialect whose clients send nothing again: perhaps one does all the same, just when the
-- ACK was late. Then this send is as good a guess as the first, and the first waits no longer.
local function supersede(queue, before, now, resend)
    local gap = now - before.last_time
    if not before.done and gap > 0.8 * resend and gap < 1.3 * resend then
        queues.drop(queue, before)
    end
end

-- A waiting request in whose place this message stands with another payload, just when that would be sent again.
local function altered(queue, m, now, resend)
    for place = queue.first, queue.last do
        local request = queue[place]
        local asked = request.m
        if not request.done and (request.sends or 1) <= 2 and asked.layout.message == m.layout.message then
            local gap = now - request.last_time
            if asked.topic == m.topic and asked.id == m.id and gap > 0.8 * resend and gap < 1.3 * resend then
                return request
            end
        end
    end
    return nil
end

-- A request is sent: its record, and whether this is one more send of it. The record also serves as that of a
-- publish. `ip_id` counts where nobody sends anything again: what the network made two of is known by it.
function acks.request(queue, m, frame, now, ip_id, dialect, may_resend)
    local before = queues.find(queue, m)
    if before and not repeats(queue, before, m, now, ip_id, dialect.resend_after, may_resend) then
        if not dialect.has_resends then
            supersede(queue, before, now, dialect.resend_after)
        end
        before = nil
    end
    if may_resend and not before and queue.size > 0 and m.payload and m.payload ~= "" then
        before = m.id ~= 0 and altered(queue, m, now, dialect.resend_after)
    end
    if before then
        results.mark("sent_again", before.last_frame or before.frame, frame)
        results.mark("resend_of", frame, before.frame)
        before.sends, before.last_frame, before.last_time = (before.sends or 1) + 1, frame, now
        before.ip_id, queue.latest = ip_id, before
        if m.bytes ~= before.m.bytes then
            results.resend_differs[frame] = true
        end
        return before, true
    end
    -- Sixteen fields at most, so that Lua makes the table in its final size. Others are there where they are not as
    -- usual: `sends`, `last_frame`, `tie`, `alike`, `ip_id`; as a publish (see forwards) also `before`.
    local request = {
        frame = frame,
        time = now,
        last_time = now,
        m = m,
        queue = queue,
        acks = 0,
        done = false,
        answered = false, -- the frame of its ACK
        ack_at = 0,
        ack_ip = 0,
        forwarded = false,
        due = false, -- from here on as a publish
        left = 0,
        got = false,
        last = frame,
    }
    if ip_id > 0 then
        request.ip_id = ip_id
    end
    results.link[frame] = 0
    if m.id == 0 then
        results.wants_no_ack[frame] = true
    end
    queues.add(queue, request)
    return request, false
end

-- -- ACKs
-- ------------------------------------------------------------------------------------------------------------

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

-- Requests that share ACKs of which nothing tells whose they are: `acks` of them for `members` requests. Once there
-- are as many, no further ACK can be for one of them.
local function tie_together(open)
    local tie = { acks = 1, members = 0 }
    for _, request in ipairs(open) do
        local other = request.tie
        if other ~= tie then
            if other and not other.is_counted then
                tie.acks, tie.members, other.is_counted = tie.acks + other.acks, tie.members + other.members, tie
            elseif not other then
                tie.members = tie.members + 1
            end
            request.tie = tie
        end
    end
end

local function tie_of(request)
    local tie = request.tie
    while tie and tie.is_counted do -- it has become part of another
        tie = tie.is_counted
        request.tie = tie
    end
    return tie
end

local function is_doubtful(request)
    local tie = tie_of(request)
    return (tie and tie.acks < tie.members) or request.acks < (request.sends or 1)
end

-- Nothing tells which of these requests it answers. The one that is most likely counts as answered from here on.
local function leave_open(request, open, frame, now)
    local frames = {}
    for place, other in ipairs(open) do
        frames[place] = other.frame
        results.add_perhaps(other.frame, frame)
        tie_of(other)
    end
    tie_together(open)
    request.acks = request.acks + 1
    results.mark("candidates", frame, frames)
    results.link[frame], results.after[frame], results.quality[frame] = -request.frame, now - request.time, "queued"
end

-- It was left open, and now is not.
local function decide(request, frame, now)
    for _, other in ipairs(results.candidates[frame]) do
        results.drop_perhaps(other, frame)
    end
    results.candidates[frame] = nil
    settle(request, frame, now, "anchored")
end

local function is_doubled(request, now, ip_id)
    if ip_id > 0 or request.ack_ip > 0 then
        return ip_id == request.ack_ip and now - request.ack_at < DOUBLED_BY_ID
    end
    return now - request.ack_at < DOUBLED
end

-- The request whose ACK the network doubled into this one.
local function doubled(queue, ack, now, ip_id)
    for age = 0, queues.PAST - 1 do
        local request = queues.answered(queue, age)
        if not request then
            return nil
        elseif ip_id > 0 and is_doubled(request, now, ip_id) and fits(ack, request) then
            return request
        end
    end
    return nil
end

-- An answered request to a resend of which this is one more ACK, if any; else one that was answered a moment ago.
local function answered_again(queue, ack, now, ip_id, resend)
    local twice = nil
    for age = 0, queues.PAST - 1 do
        local request = queues.answered(queue, age)
        if not request then
            break
        elseif fits(ack, request) then
            local waited, is_copy = now - request.last_time, is_doubled(request, now, ip_id)
            if waited > PATIENCE * resend then
                break
            elseif is_copy and ip_id > 0 then
                return request, nil
            elseif request.acks < (request.sends or 1) and 2 * waited < resend and not is_copy then
                return request, nil
            end
            twice = twice or (now - request.ack_at < TWICE and request) or nil
        end
    end
    return nil, twice
end

local open = {} -- what the search below finds: requests that may be answered

-- Requests whose ACK was left open a moment ago, or that wait about as long as the likely one: this ACK may be
-- theirs, and that one have been another's. So are those that were sent more often than answered.
local function add_doubtful(queue, ack, now, chosen, count, alone)
    local limit = max(FRESH, COMPARABLE * (now - chosen.last_time))
    for age = 0, queues.PAST - 1 do
        local request = queues.answered(queue, age)
        if not request then
            break
        elseif is_doubtful(request) and now - request.last_time <= limit and fits(ack, request) then
            count, alone = count + 1, request.forwarded and alone or alone + 1
            open[count] = request
        end
    end
    return count, alone
end

-- Nothing is answered in half the time that an answer ever took: those that were only just sent are taken out, if
-- others are left.
local function drop_the_newest(count, now, least)
    local kept = 0
    for place = 1, count do
        local request = open[place]
        if now - request.last_time >= least / 2 then
            kept = kept + 1
            open[kept] = request
        end
    end
    return kept > 0 and kept or count
end

-- The request that this ACK answers most likely, its rank, and how many there are, and of them without forwards. What
-- is named alike was sent alike, and is answered in order. Else best is the one that the anchor names; then one
-- without forwards, beside which its ACK would stand; of equals the one that has waited as long as is usual, or where
-- nothing is known, the oldest of the fresh.
local function search(queue, ack, now, anchor, dialect)
    local resend, usual = dialect.resend_after, queue.usual
    local is_named = ack.layout.acks_by ~= "order"
    local chosen, rank, oddity, count, alone = nil, 0, 0, 0, 0
    for place = queue.first, queue.last do
        local request = queue[place]
        local age = not request.done and now - request.last_time
        if age and age <= PATIENCE * resend and fits(ack, request) then
            count = count + 1
            open[count] = request
            local worth = request == anchor and 3 or request.forwarded and 1 or 2
            alone = request.forwarded and alone or alone + 1
            local unusual = usual and not is_named and abs(age - usual) or (age > FRESH and 1 or 0)
            if worth > rank or (worth == rank and unusual < oddity) then
                chosen, rank, oddity = request, worth, unusual
            end
        end
    end
    return chosen, rank, count, alone
end

-- Brokers work in order: an older request that was to be forwarded, and was not, makes an anchor doubtful.
local function is_in_order(chosen, now, count)
    for place = 1, count do
        local other = open[place]
        if other == chosen then
            return true
        elseif not other.forwarded and other.due and other.due.total > 0 and now - other.last_time <= FRESH then
            return false
        end
    end
    return true
end

local function quality_of(chosen, count, rank, alone, now, dialect)
    if count == 1 then
        return chosen.sends and "resent" or "exact"
    elseif rank == 3 or (dialect.forwards_first and alone == 1 and rank == 2) then
        return is_in_order(chosen, now, count) and (chosen.sends and "resent" or "anchored") or "queued"
    end
    return "queued"
end

-- An ACK comes: the request that it answers, or nil, and whether that is left open. `anchor` is the request to which
-- the forward beside it belongs, where the dialect's brokers send the forwards first.
function acks.answer(queue, ack, frame, now, ip_id, dialect, anchor)
    local is_named = ack.layout.acks_by ~= "order"
    local before = not is_named and queue.answers > 0 and doubled(queue, ack, now, ip_id)
    if before then
        settle(before, frame, now, "resent")
        return before
    end
    local chosen, rank, count, alone = search(queue, ack, now, anchor, dialect)
    if not chosen then
        local twice
        before, twice = answered_again(queue, ack, now, ip_id, dialect.resend_after)
        if before then
            settle(before, frame, now, "resent")
            results.link[frame], results.after[frame] = before.last_frame, now - before.last_time
            return before
        end
        results.link[frame], results.quality[frame] = 0, "none"
        if twice then
            results.mark("twice", frame, twice.answered)
        end
        return nil
    end
    if not is_named and rank < 3 and queue.answers > 0 then
        count, alone = add_doubtful(queue, ack, now, chosen, count, alone)
    end
    if rank < 3 and count > 1 and queue.least then
        count = drop_the_newest(count, now, queue.least)
    end
    for place = count + 1, #open do
        open[place] = nil
    end
    local quality = quality_of(chosen, is_named and 1 or count, rank, alone, now, dialect)
    if quality == "queued" then
        leave_open(chosen, open, frame, now)
    else
        settle(chosen, frame, now, quality)
        if quality == "exact" then
            local took, usual = now - chosen.time, queue.usual
            queue.usual, queue.least = usual and (3 * usual + took) / 4 or took, min(queue.least or took, took)
        end
    end
    chosen.answered, chosen.ack_at, chosen.ack_ip = frame, now, ip_id
    queues.answer(queue, chosen)
    return chosen, quality == "queued"
end

-- Is there no older one that was to be forwarded before it?
local function is_first(queue, guess, served, now)
    local count = 0
    if guess and guess.frame < served.frame then
        count, open[1] = 1, guess
    end
    for place = queue.first, queue.last do
        local other = queue[place]
        if not other.done and other.frame < served.frame then
            count = count + 1
            open[count] = other
        end
    end
    return is_in_order(served, now, count)
end

local function is_candidate(request, frame)
    for _, other in ipairs(results.candidates[frame] or {}) do
        if other == request.frame then
            return true
        end
    end
    return false
end

-- Where the ACK goes first: the forward right after it belongs to `served`, so an ACK that was left open was for
-- that.
function acks.correct(guess, served)
    local frame, now, queue = guess.answered, guess.ack_at, guess.queue
    if not frame or queue ~= served.queue or not is_candidate(served, frame) then
        return
    elseif guess ~= served then
        if served.done or not is_first(queue, guess, served, now) then
            return
        end
        queues.drop(queue, served)
        queues.restore(queue, guess)
        guess.acks, guess.answered = 0, false
        served.answered, served.ack_at, served.ack_ip = frame, now, guess.ack_ip
        queues.correct_answer(queue, served)
    elseif not is_first(queue, nil, served, now) then
        return
    else
        guess.acks = 0
    end
    guess.tie, served.tie = nil, nil
    decide(served, frame, now)
end
