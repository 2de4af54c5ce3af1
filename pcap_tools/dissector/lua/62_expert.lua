-- Expert information, each with a filter name pubsub.expert.<id>: what one packet or its tracked past shows is wrong.
local ts = ...
if not ts.proto then
    return
end
local results, story, LATE = ts.results, ts.story, ts.forwards.LATE

local experts = {}
ts.experts = experts

local GROUP, SEVERITY = expert.group, expert.severity

local function define(id, text, group, severity)
    experts[id] = ProtoExpert.new("pubsub.expert." .. id, text, group, severity)
end

-- The error codes of docs/decoding.md, with `_` for `-`. Not in the group "malformed", by which Wireshark means that a
-- dissector ran off the end of a packet.
define("empty", "No byte at all", GROUP.PROTOCOL, SEVERITY.ERROR)
define("unknown_type", "No message of the dialect has this type", GROUP.UNDECODED, SEVERITY.WARN)
define("incomplete", "The datagram ends inside a field", GROUP.PROTOCOL, SEVERITY.ERROR)
define("no_delimiter", "The delimiter that ends a field is missing", GROUP.PROTOCOL, SEVERITY.ERROR)
define("bad_magic", "Constant bytes that differ", GROUP.PROTOCOL, SEVERITY.ERROR)
define("bad_length", "A length that contradicts what is there", GROUP.PROTOCOL, SEVERITY.ERROR)
define("bad_value", "A number that the dialect does not know", GROUP.PROTOCOL, SEVERITY.WARN)
define("bad_text", "A byte that is not in the text's character set", GROUP.PROTOCOL, SEVERITY.WARN)
define("trailing_bytes", "Bytes after the message that are no padding", GROUP.UNDECODED, SEVERITY.WARN)
define("cut", "The capture holds only a part of the datagram", GROUP.UNDECODED, SEVERITY.NOTE)
-- What the message says.
define("wildcard_in_topic", "A wildcard in a published topic", GROUP.PROTOCOL, SEVERITY.WARN)
-- What its past says.
define("copy", "A copy, captured on another interface", GROUP.SEQUENCE, SEVERITY.CHAT)
define("resend", "The request was sent before and is not acknowledged yet", GROUP.SEQUENCE, SEVERITY.NOTE)
define("resend_differs", "A resend that is not the same bytes", GROUP.SEQUENCE, SEVERITY.WARN)
define("duplicate_ack", "The ACK of a moment ago once more: no request waits for it", GROUP.SEQUENCE, SEVERITY.WARN)
define("unsolicited_ack", "No outstanding request was seen for this ACK", GROUP.SEQUENCE, SEVERITY.WARN)
define("missing_forward", "A subscriber did not get the message", GROUP.SEQUENCE, SEVERITY.WARN)
define("duplicate_forward", "One more copy than the subscriptions ask for", GROUP.SEQUENCE, SEVERITY.WARN)
define("late_forward", "The forward comes seconds after its publish", GROUP.SEQUENCE, SEVERITY.WARN)
define("unknown_publish", "No publish with this topic and payload was seen", GROUP.SEQUENCE, SEVERITY.NOTE)
define("open_forward", "The forward may be that of this publish or of another", GROUP.SEQUENCE, SEVERITY.CHAT)
define("refusal", "The broker refuses the request", GROUP.RESPONSE_CODE, SEVERITY.WARN)
define("unexpected_forward", "The receiver has no subscription that matches", GROUP.SEQUENCE, SEVERITY.WARN)
define("unknown_subscriber", "No subscription of the receiver was seen", GROUP.SEQUENCE, SEVERITY.NOTE)
define("no_ack", "No ACK was seen", GROUP.SEQUENCE, SEVERITY.WARN)
define("open_ack", "The ACK may answer this request or another", GROUP.SEQUENCE, SEVERITY.CHAT)
-- What `topicshark annotate` wrote into the capture.
define("finding_error", "Finding of topicshark check, an error", GROUP.COMMENTS_GROUP, SEVERITY.ERROR)
define("finding_warning", "Finding of topicshark check, a warning", GROUP.COMMENTS_GROUP, SEVERITY.WARN)
define("finding_note", "Finding of topicshark check, a note", GROUP.COMMENTS_GROUP, SEVERITY.NOTE)
ts.proto.experts = experts

local UNEXPECTED = {
    filter = "unexpected_forward",
    subscriber = "unknown_subscriber",
    duplicate = "duplicate_forward",
    publish = "unknown_publish",
}

-- The finding that a comment of a packet tells: the id of its expert information and the sentence; nil for others.
function ts.finding_in(comment)
    local rule, level, doubt, text = comment:match("^topicshark (%S+) %((%a+)([^)]*)%): (.*)$")
    if not experts["finding_" .. (level or "")] then
        return nil
    end
    local id = doubt == "" and "finding_" .. level or "finding_note"
    return { id, rule .. doubt .. ": " .. text }
end

-- One for each subscriber that was left out.
local function add_missing(ids, frame, left)
    local told = story.of(frame, left)
    for _, one in ipairs(told and told.subscribers or {}) do
        if one.missing > 0 then
            ids[#ids + 1] = { "missing_forward", "Not forwarded to " .. one.endpoint }
        end
    end
end

-- The ids that apply to this message, as a list, or pairs of an id and a text; nil for none, which is the common case.
-- `later` is how many seconds of the capture come after it, once the whole was seen.
function ts.experts_of(m, frame, later)
    local error, is_ack = m.error, m.layout.meaning == "ack"
    local unanswered = (later or is_ack) and results.link[frame] == 0
    local is_lacking = later and type(results.kin[frame]) == "table"
    if not (error or unanswered or m.is_odd or is_lacking or results.marked[frame]) then
        return nil
    end
    local is_copy, resend, unexpected = results.copy_of[frame], results.resend_of[frame], results.unexpected[frame]
    local ids = {}
    if error then
        ids[1] = error:gsub("-", "_")
    end
    if is_copy then
        ids[#ids + 1] = "copy"
        return ids
    end
    if m.has_wildcard then
        ids[#ids + 1] = "wildcard_in_topic"
    end
    if resend then
        ids[#ids + 1] = "resend"
    end
    if results.resend_differs[frame] then
        ids[#ids + 1] = "resend_differs"
    end
    if unexpected then
        ids[#ids + 1] = UNEXPECTED[unexpected]
    end
    if m.is_refusal then
        ids[#ids + 1] = "refusal"
    end
    if (results.delay[frame] or 0) >= LATE then
        ids[#ids + 1] = "late_forward"
    end
    if not is_ack and results.candidates[frame] then
        ids[#ids + 1] = "open_forward"
    end
    if is_lacking then
        add_missing(ids, frame, later)
    end
    if unanswered and is_ack then
        ids[#ids + 1] = results.twice[frame] and "duplicate_ack" or "unsolicited_ack"
    elseif (is_ack and results.candidates[frame]) or (unanswered and results.perhaps[frame]) then
        ids[#ids + 1] = "open_ack"
    elseif unanswered and not results.wants_no_ack[frame] then
        ids[#ids + 1] = "no_ack"
    end
    return ids[1] and ids or nil
end
