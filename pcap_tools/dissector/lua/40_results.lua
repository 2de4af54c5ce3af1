-- What tracking found out, by frame number. Written on the first pass over a file, only read later.
--
-- Plain arrays of numbers instead of one table a frame: a capture of a million messages stays small and quick.
local ts = ...

local results = {}
ts.results = results

local COLUMNS = {
    "dialect", -- place of the dialect that was chosen, where ports alone do not tell
    "link", -- of a request its ACK's frame (0: none yet), of an ACK the request's frame
    "is_ack", -- true for ACKs
    "quality", -- of the match, on the ACK
    "ack_time", -- seconds from request to ACK, on both
    "resend_of",
    "resend_differs", -- true where a resend is not the same bytes
    "copy_of",
    "forward_of",
    "first_forward", -- of a publish
    "last_forward",
    "next_forward", -- of a forward: the next one of the same publish
    "fanout", -- how many forwards a publish has
    "due", -- how many it should have by the subscriptions seen
    "subscribed_in",
    "unexpected", -- a forward that no subscription explains: "filter" or "subscriber"
    "topic_name", -- the name behind a topic number
    "wants_no_ack", -- a request with the id 0
}

function results.reset()
    for _, column in ipairs(COLUMNS) do
        results[column] = {}
    end
end

results.reset()

-- A forward at the end of its publish's list.
function results.add_forward(publish, frame)
    local last = results.last_forward[publish]
    if last then
        results.next_forward[last] = frame
    else
        results.first_forward[publish] = frame
    end
    results.last_forward[publish] = frame
    results.forward_of[frame] = publish
    results.fanout[publish] = (results.fanout[publish] or 0) + 1
end
