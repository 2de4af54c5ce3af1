-- The Info column: one telling line, safe to print whatever the packet holds.
--
--     PUBLISH home/room/light "ON" retained → 2 subscribers
local ts = ...
local results, story, charsets = ts.results, ts.story, ts.charsets
local concat, min = table.concat, math.min
local find, sub, gsub, format, byte = string.find, string.sub, string.gsub, string.format, string.byte

local ARROW = " \226\134\146 "
local MOST_SHOWN = 60

-- Characters that are not seen but act, in UTF-8: C1 controls and the soft hyphen, marks that change the direction of
-- what follows, those that join or have no width, tags. Wireshark's columns show them as they are.
local ACTING = {
    "\194[\128-\159\173]",
    "\216\156",
    "\226\128[\139-\143\168-\174]",
    "\226\129[\160-\175]",
    "\239\187\191",
    "\243\160[\128\129]",
}

local function acts(text)
    for _, pattern in ipairs(ACTING) do
        if find(text, pattern) then
            return true
        end
    end
    return false
end

-- Text from a packet: what acts, control characters and bytes that are no UTF-8 as \xNN, long texts cut.
function ts.shown(text)
    if #text > MOST_SHOWN then
        text = sub(text, 1, MOST_SHOWN) .. "..."
    end
    local _, last = find(text, "^[\32-\126]*")
    if last == #text then
        return text
    end
    if charsets.is_readable(text) and not find(text, "[\t\n\11\12\r]") and not acts(text) then
        return text
    end
    return (gsub(text, "[^\32-\126]", function(char)
        return format("\\x%02x", byte(char))
    end))
end
local shown, shown_topic = ts.shown, ts.remember(ts.shown)

-- Frame numbers come several times in a row and in order, and Lua takes its time to write a number: the thousands are
-- kept, and what follows them comes from a table.
local REST = {}
for rest = 0, 999 do
    REST[rest] = format("%03d", rest)
end
local last_number, last_text, last_thousands, thousands_text = 0, "0", 0, ""

local function text_of(number)
    if number ~= last_number then
        local rest = number % 1000
        local thousands = number - rest
        if thousands ~= last_thousands then
            last_thousands, thousands_text = thousands, format("%d", thousands / 1000)
        end
        last_text = thousands == 0 and format("%d", number) or thousands_text .. REST[rest]
        last_number = number
    end
    return last_text
end

-- One publish has many forwards, and all show the same.
local last_publish, last_line, last_forward = 0, "", ""

local function forward_line(line, publish)
    if publish ~= last_publish or line ~= last_line then
        last_publish, last_line = publish, line
        last_forward = line .. " [forward of " .. text_of(publish) .. "]"
    end
    return last_forward
end

local function about_count(got, due)
    local count = got == due and text_of(got) or got .. " of " .. due
    return ARROW .. count .. ((got == 1 and due == 1) and " subscriber" or " subscribers")
end

local DUE = { [0] = "" } -- by number: the words for a publish whose forwards are yet to come
for due = 1, 64 do
    DUE[due] = about_count(due, due)
end

local function about_forwards(frame, due, later)
    if not later then
        return DUE[due] or about_count(due, due)
    end
    local told = story.of(frame, later)
    local got = told.seen
    due = told.due
    return got == 0 and due == 0 and ARROW .. "no subscriber" or about_count(got, due)
end

-- The part that depends on the datagram alone, kept with it.
local function line_of(m)
    local line = m.layout.message or "?"
    local topic = m.topic or m.filter
    if topic and m.payload then -- the common case, in one go
        line = line .. " " .. shown_topic(topic) .. ' "' .. shown(m.payload) .. (m.retain and '" retained' or '"')
    else
        line = line .. (topic and " " .. shown_topic(topic) or "")
        line = line .. (m.payload and ' "' .. shown(m.payload) .. '"' or "") .. (m.retain and " retained" or "")
    end
    m.line = line
    return line
end

-- What is out of the ordinary.
local function about_past(m, frame)
    local name, resend, copy = results.topic_name[frame], results.resend_of[frame], results.copy_of[frame]
    local past = name and " (" .. shown(name) .. ")" or ""
    if resend then
        past = past .. " [resend of " .. text_of(resend) .. "]"
    end
    if copy then
        past = past .. " [copy of " .. text_of(copy) .. "]"
    end
    if m.error then
        past = past .. " [" .. m.error .. " at byte " .. m.error_offset .. "]"
    end
    return past
end

local MOST_NAMED = 4

-- "357 or 360"
local function choice_of(frames)
    local text = concat(frames, " or ", 1, min(#frames, MOST_NAMED))
    return #frames > MOST_NAMED and text .. " or " .. #frames - MOST_NAMED .. " more" or text
end

-- The line for a message, and whether anything about it is out of the ordinary. `later` is true once the whole
-- capture was seen.
function ts.info(m, frame, later)
    local line, is_odd = m.line or line_of(m), m.is_odd or results.marked[frame]
    if is_odd then
        line = line .. about_past(m, frame)
    end
    local meaning = m.layout.meaning
    if meaning == "ack" then
        local link = results.link[frame]
        if link == 0 and results.twice[frame] then
            return line .. " [once more, after " .. text_of(results.twice[frame]) .. "]", true
        elseif link == 0 then
            return line .. " [unsolicited]", true
        elseif link and link > 0 then
            line = line .. " [ACK to " .. text_of(link) .. "]"
        elseif link then
            line = line .. " [ACK to " .. choice_of(results.candidates[frame]) .. "]"
        end
    elseif meaning == "publish" or meaning == "deliver" then
        local kin = results.kin[frame]
        if not kin then
            return line, is_odd
        elseif results.candidates[frame] then
            return line .. " [forward of " .. choice_of(results.candidates[frame]) .. "]", true
        elseif type(kin) == "number" then
            return forward_line(line, kin), is_odd
        end
        return line .. about_forwards(frame, kin.total, later), is_odd
    end
    return line, is_odd
end
