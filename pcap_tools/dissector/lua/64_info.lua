-- The Info column: one telling line, safe to print whatever the packet holds.
--
--     PUBLISH home/room/light "ON" retained → 2 subscribers
local ts = ...
local results, charsets = ts.results, ts.charsets
local find, sub, gsub, format, byte = string.find, string.sub, string.gsub, string.format, string.byte

local ARROW = " \226\134\146 "
local MOST_SHOWN = 60

-- Text from a packet: control characters and bytes that are no UTF-8 as \xNN, long texts cut.
function ts.shown(text)
    if #text > MOST_SHOWN then
        text = sub(text, 1, MOST_SHOWN) .. "..."
    end
    if not find(text, "[^\32-\126]") then
        return text
    end
    if charsets.is_readable(text) and not find(text, "[\t\n\11\12\r]") then
        return text
    end
    return (gsub(text, "[^\32-\126]", function(char)
        return format("\\x%02x", byte(char))
    end))
end
local shown = ts.shown

local function about_forwards(frame, later)
    local due, got = results.due[frame], results.fanout[frame] or 0
    if not due then
        return ""
    end
    if not later then -- the forwards are yet to come: say how many are due
        got = due
    end
    local count = got == due and got or got .. " of " .. due
    if got == 0 and due == 0 then
        return later and ARROW .. "no subscriber" or ""
    end
    return ARROW .. count .. ((got == 1 and due == 1) and " subscriber" or " subscribers")
end

local function about_past(w, frame)
    local past = ""
    if results.forward_of[frame] then
        past = past .. " [forward of " .. results.forward_of[frame] .. "]"
    end
    if results.is_ack[frame] then
        local link = results.link[frame]
        past = past .. (link == 0 and " [unsolicited]" or " [ACK to " .. link .. "]")
    end
    if results.resend_of[frame] then
        past = past .. " [resend of " .. results.resend_of[frame] .. "]"
    end
    if results.copy_of[frame] then
        past = past .. " [copy of " .. results.copy_of[frame] .. "]"
    end
    if w.error then
        past = past .. " [" .. w.error .. " at byte " .. w.error_offset .. "]"
    end
    return past
end

-- The line for a decoded message. `later` is true once the whole capture was seen.
function ts.info(w, frame, later)
    local line = w.message or "?"
    local topic = w.topic or w.filter
    if topic then
        line = line .. " " .. shown(topic)
        if results.topic_name[frame] then
            line = line .. " (" .. shown(results.topic_name[frame]) .. ")"
        end
    end
    if w.payload then
        line = line .. ' "' .. shown(w.payload) .. '"'
    end
    if w.retain then
        line = line .. " retained"
    end
    return line .. about_forwards(frame, later) .. about_past(w, frame)
end
