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
    local _, last = find(text, "^[\32-\126]*")
    if last == #text then
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

local function about_forwards(frame, due, later)
    local got = due
    if later then -- on the first pass the forwards are yet to come: say how many are due
        got = results.fanout[frame] or 0
    end
    if got == 0 and due == 0 then
        return later and ARROW .. "no subscriber" or ""
    end
    local count = got == due and got or got .. " of " .. due
    return ARROW .. count .. ((got == 1 and due == 1) and " subscriber" or " subscribers")
end

-- The part that depends on the datagram alone, kept with it.
local function line_of(m)
    local line = m.message or "?"
    local topic = m.topic or m.filter
    if topic then
        line = line .. " " .. shown(topic)
    end
    if m.payload then
        line = line .. ' "' .. shown(m.payload) .. '"'
    end
    if m.retain then
        line = line .. " retained"
    end
    m.line = line
    return line
end

-- The line for a message. `later` is true once the whole capture was seen.
function ts.info(m, frame, later)
    local line = m.line or line_of(m)
    local copy, resend, forward = results.copy_of[frame], results.resend_of[frame], results.forward_of[frame]
    local due, name = results.due[frame], results.topic_name[frame]
    if name then
        line = line .. " (" .. shown(name) .. ")"
    end
    if due then
        line = line .. about_forwards(frame, due, later)
    elseif results.is_ack[frame] then
        local link = results.link[frame]
        line = line .. (link == 0 and " [unsolicited]" or " [ACK to " .. link .. "]")
    elseif forward then
        line = line .. " [forward of " .. forward .. "]"
    end
    if resend then
        line = line .. " [resend of " .. resend .. "]"
    end
    if copy then
        line = line .. " [copy of " .. copy .. "]"
    end
    if m.error then
        line = line .. " [" .. m.error .. " at byte " .. m.error_offset .. "]"
    end
    return line
end
