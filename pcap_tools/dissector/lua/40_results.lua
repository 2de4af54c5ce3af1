-- What tracking found out, by frame number. Written on the first pass over a file, only read later.
--
-- Plain arrays of numbers instead of one table a frame: a capture of a million messages stays small and quick.
local ts = ...

local results = {}
ts.results = results

local COLUMNS = {
    "dialect", -- place of the dialect that was chosen, where ports alone do not tell
    "link", -- of a request its ACK's frame (0: none yet), of an ACK the request's frame
    "quality", -- of the match, on the ACK
    "ack_time", -- seconds from request to ACK, on the ACK
    "marked", -- true where any of the columns below has a value: one look for the common case
    "resend_of",
    "resend_differs", -- true where a resend is not the same bytes
    "copy_of",
    "unexpected", -- a forward that no subscription explains: "filter" or "subscriber"
    "topic_name", -- the name behind a topic number
    -- not marked:
    "forward_of",
    "next_forward", -- of a publish or forward: the next forward of the same publish
    "due", -- how many forwards a publish should have by the subscriptions seen
    "subscribed_in",
    "wants_no_ack", -- a request with the id 0
}

function results.reset()
    for _, column in ipairs(COLUMNS) do
        results[column] = {}
    end
end

results.reset()

-- Open the columns of common values for a frame. Lua keeps an array as such only while more than half of it is filled.
function results.open(frame)
    results.link[frame], results.ack_time[frame] = false, false
    results.forward_of[frame], results.next_forward[frame] = false, false
    results.due[frame], results.subscribed_in[frame] = false, false
end

-- Note something out of the ordinary.
function results.mark(column, frame, value)
    results[column][frame], results.marked[frame] = value, true
end

-- How many forwards a publish has.
function results.fanout(publish)
    local count, forward = 0, results.next_forward[publish]
    while forward do
        count, forward = count + 1, results.next_forward[forward]
    end
    return count
end
