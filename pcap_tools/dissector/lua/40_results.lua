-- What tracking found out, by frame number. Written on the first pass over a file, only read later.
--
-- Plain arrays of numbers instead of one table a frame: a capture of a million messages stays small and quick.
local ts = ...

local results = {}
ts.results = results

local COLUMNS = {
    "dialect", -- place of the dialect that was chosen, where ports alone do not tell
    "link", -- of a request its ACK's frame (0: none yet), of an ACK the request's (0: none; below 0: left open, likely)
    "quality", -- of the match, on the ACK
    "kin", -- of a forward its publish's frame, of a publish the forwards that are due (see subscriptions.due)
    "after", -- of a publish or forward the next forward of the same publish, of an ACK the seconds after its request
    "subscribed_in",
    "marked", -- true where any of the columns below has a value: one look for the common case
    "resend_of",
    "resend_differs", -- true where a resend is not the same bytes
    "candidates", -- of an ACK or forward that is left open: the frames of the requests whose it may be
    "perhaps", -- of a request: the ACKs that may answer it
    "twice", -- of an ACK that nobody waits for: the ACK a moment before it
    "sent_again", -- of a request: the frame in which it is sent again
    "refused", -- true for a request that the broker refuses
    "copy_of",
    "unexpected", -- a forward that is not due: no "filter" takes it, no "subscriber", a "duplicate", no "publish"
    "topic_name", -- the name behind a topic number
    -- not marked:
    "wants_no_ack", -- a request with the id 0
    "delay", -- of a forward: the seconds since its publish
}

local link, kin, after, subscribed_in, delay -- the columns of common values

function results.reset()
    for _, column in ipairs(COLUMNS) do
        results[column] = {}
    end
    link, kin, after, subscribed_in = results.link, results.kin, results.after, results.subscribed_in
    delay = results.delay
end

results.reset()

-- Open the columns of common values for a frame. Lua keeps an array as such only while more than half of it is
-- filled, and as few of them as will do: their length is what a garbage collection takes.
function results.open(frame)
    link[frame], kin[frame], after[frame], subscribed_in[frame], delay[frame] = false, false, false, false, false
end

-- Note something out of the ordinary.
function results.mark(column, frame, value)
    results[column][frame], results.marked[frame] = value, true
end

-- This ACK may answer that request.
function results.add_perhaps(request, ack)
    local known = results.perhaps[request] or {}
    known[#known + 1] = ack
    results.mark("perhaps", request, known)
end

function results.drop_perhaps(request, ack)
    local known = results.perhaps[request]
    for place = #known, 1, -1 do
        if known[place] == ack then
            table.remove(known, place)
        end
    end
    results.perhaps[request] = known[1] and known or nil
end

-- The publish that a frame forwards.
function results.forward_of(frame)
    local publish = kin[frame]
    return type(publish) == "number" and not results.candidates[frame] and publish or nil
end

-- The forwards that a publish should have by the subscriptions seen.
function results.due(frame)
    local due = kin[frame]
    return type(due) == "table" and due or nil
end

-- How many forwards a publish has.
function results.fanout(publish)
    local count, forward = 0, after[publish]
    while forward do
        count, forward = count + 1, after[forward]
    end
    return count
end
