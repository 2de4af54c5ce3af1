-- Expert information, each with a filter name pubsub.expert.<id>: what one packet or its tracked past shows is wrong.
local ts = ...
if not ts.proto then
    return
end
local results, topics = ts.results, ts.topics

local experts = {}
ts.experts = experts

local GROUP, SEVERITY = expert.group, expert.severity

local function define(id, text, group, severity)
    experts[id] = ProtoExpert.new("pubsub.expert." .. id, text, group, severity)
end

-- The error codes of docs/decoding.md, with `_` for `-`.
define("empty", "No byte at all", GROUP.MALFORMED, SEVERITY.ERROR)
define("unknown_type", "No message of the dialect has this type", GROUP.UNDECODED, SEVERITY.WARN)
define("incomplete", "The datagram ends inside a field", GROUP.MALFORMED, SEVERITY.ERROR)
define("no_delimiter", "The delimiter that ends a field is missing", GROUP.MALFORMED, SEVERITY.ERROR)
define("bad_magic", "Constant bytes that differ", GROUP.MALFORMED, SEVERITY.ERROR)
define("bad_length", "A length that contradicts what is there", GROUP.MALFORMED, SEVERITY.ERROR)
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
define("unsolicited_ack", "No outstanding request was seen for this ACK", GROUP.SEQUENCE, SEVERITY.WARN)
define("unexpected_forward", "The receiver has no subscription that matches", GROUP.SEQUENCE, SEVERITY.WARN)
define("unknown_subscriber", "No subscription of the receiver was seen", GROUP.SEQUENCE, SEVERITY.NOTE)
define("no_ack", "No ACK was seen", GROUP.SEQUENCE, SEVERITY.NOTE)
ts.proto.experts = experts

local TOPICAL = { publish = true, deliver = true }

-- The ids that apply to this message, as a list; nil for none, which is the common case. `later` is true once the whole
-- capture was seen.
function ts.experts_of(dialect, w, frame, later)
    local ids = nil
    local function add(id)
        ids = ids or {}
        ids[#ids + 1] = id
    end
    if w.error then
        add((w.error:gsub("-", "_")))
    end
    if results.copy_of[frame] then
        add("copy")
        return ids
    end
    if dialect.topics.wildcards and TOPICAL[w.meaning] and w.topic and topics.has_wildcard(dialect.topics, w.topic) then
        add("wildcard_in_topic")
    end
    if results.resend_of[frame] then
        add("resend")
        if results.resend_differs[frame] then
            add("resend_differs")
        end
    end
    local unexpected = results.unexpected[frame]
    if unexpected then
        add(unexpected == "filter" and "unexpected_forward" or "unknown_subscriber")
    end
    if results.link[frame] == 0 then
        if results.is_ack[frame] then
            add("unsolicited_ack")
        elseif later and not results.wants_no_ack[frame] then
            add("no_ack")
        end
    end
    return ids
end
