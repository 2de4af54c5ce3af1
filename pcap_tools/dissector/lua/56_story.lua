-- What the whole capture tells of one publish: who was to get it, who did, who was left out; and which frames belong
-- together. Asked for once the capture was seen.
local ts = ...
local results = ts.results

local story = {}
ts.story = story

local PATIENCE = 1 -- seconds; what is due may still come

-- Was the subscription in this frame sure to stand when the publish came: not refused, and acknowledged before it?
local function is_sure(subscription, publish)
    local ack = results.link[subscription]
    return not ack or (ack > 0 and ack < publish)
end

-- Did the broker get the publish, as far as can be told?
local function has_arrived(publish, forwards)
    local ack = results.link[publish]
    return forwards > 0 or not ack or ack > 0 or results.wants_no_ack[publish]
end

local last_publish, last_left, last_told -- it is asked for several times in a row

function story.reset()
    last_publish = nil
end

local function by_name(one, other)
    return one.endpoint < other.endpoint
end

-- { due, seen, subscribers = list of { endpoint, frames of its subscriptions, forwards, missing } }, nil for what is no
-- publish. `left` is how many seconds of the capture come after it.
function story.of(publish, left)
    local due = results.due(publish)
    if not due then
        return nil
    end
    if publish == last_publish and left == last_left then
        return last_told
    end
    local by_subscription, seen = {}, 0
    local forward = results.after[publish]
    while forward do
        local subscription = results.subscribed_in[forward] or 0
        local list = by_subscription[subscription] or {}
        by_subscription[subscription] = list
        list[#list + 1] = forward
        seen, forward = seen + 1, results.after[forward]
    end
    local told = { due = 0, seen = seen, subscribers = {} }
    -- Who has a session may be away or asleep, and then nothing is missing for certain.
    local is_last = not results.sent_again[publish] and left > PATIENCE
    local is_over = is_last and not due.may_be_away and has_arrived(publish, seen)
    for endpoint, frames in pairs(due.frames) do
        local one = { endpoint = endpoint, frames = frames, forwards = {}, missing = 0 }
        for _, subscription in ipairs(frames) do
            local came = by_subscription[subscription] or {}
            for _, frame in ipairs(came) do
                one.forwards[#one.forwards + 1] = frame
            end
            local is_due = is_sure(subscription, publish) or came[1]
            told.due = told.due + (is_due and 1 or 0)
            one.missing = one.missing + (is_due and not came[1] and is_over and 1 or 0)
        end
        table.sort(one.forwards)
        told.subscribers[#told.subscribers + 1] = one
    end
    table.sort(told.subscribers, by_name)
    last_publish, last_left, last_told = publish, left, told
    return told
end

-- The first frame of the exchange that a frame belongs to: the first send of the publish or other request behind it. Of
-- an ACK that is left open each of them, so that whoever looks for one finds it.
function story.exchanges(frame, is_ack)
    local found, count = {}, 0
    local function add(one)
        one = results.resend_of[one] or one
        local publish = results.kin[one]
        if type(publish) == "number" then
            one = results.resend_of[publish] or publish
        end
        count = count + 1
        found[count] = one
    end
    local request = results.link[frame]
    if results.candidates[frame] then
        for _, one in ipairs(results.candidates[frame]) do
            add(one)
        end
    elseif not is_ack then
        add(results.copy_of[frame] or frame)
    elseif request and request > 0 then
        add(request)
    end
    return found
end
