-- Is a text JSON? Objects and arrays only: a bare number or word is no payload that a JSON dissector would help with.
-- Nothing is built, and the work is bounded by the text.
local ts = ...
local find, byte, sub = string.find, string.byte, string.sub

local MOST_DEEP, LONGEST = 64, 65536

local function behind_space(text, at)
    return find(text, "[^ \t\r\n]", at) or #text + 1
end

-- Where the string that begins here ends, or nil.
local function behind_string(text, at)
    at = at + 1
    while true do
        local stop = find(text, '["\\%c]', at)
        local char = stop and byte(text, stop)
        if char == 34 then
            return stop + 1
        elseif char ~= 92 then
            return nil -- a control character, or the end
        elseif find(text, '^["\\/bfnrt]', stop + 1) then
            at = stop + 2
        elseif find(text, "^u%x%x%x%x", stop + 1) then
            at = stop + 6
        else
            return nil
        end
    end
end

local WORDS = { t = "true", f = "false", n = "null" }

local function behind_plain(text, at)
    local word = WORDS[sub(text, at, at)]
    if word then
        return sub(text, at, at + #word - 1) == word and at + #word or nil
    end
    local _, last = find(text, "^%-?%d+", at)
    if not last or find(text, "^%-?0%d", at) then
        return nil
    end
    local _, fraction = find(text, "^%.%d+", last + 1)
    last = fraction or last
    local _, exponent = find(text, "^[eE][-+]?%d+", last + 1)
    return (exponent or last) + 1
end

local behind_value

local function behind_members(text, at, depth, closing, is_object)
    at = behind_space(text, at + 1)
    if byte(text, at) == closing then
        return at + 1
    end
    while at do
        if is_object then
            at = byte(text, at) == 34 and behind_string(text, at)
            at = at and behind_space(text, at)
            if not at or byte(text, at) ~= 58 then
                return nil
            end
            at = behind_space(text, at + 1)
        end
        at = behind_value(text, at, depth)
        at = at and behind_space(text, at)
        local char = at and byte(text, at)
        if char == closing then
            return at + 1
        elseif char ~= 44 then
            return nil
        end
        at = behind_space(text, at + 1)
    end
    return nil
end

function behind_value(text, at, depth)
    local char = byte(text, at)
    if depth > MOST_DEEP then
        return nil
    elseif char == 123 then
        return behind_members(text, at, depth + 1, 125, true)
    elseif char == 91 then
        return behind_members(text, at, depth + 1, 93, false)
    elseif char == 34 then
        return behind_string(text, at)
    end
    return behind_plain(text, at)
end

function ts.is_json(text)
    if #text > LONGEST or not find(text, "^[ \t\r\n]*[{%[]") then
        return false
    end
    local stop = behind_value(text, behind_space(text, 1), 1)
    return stop ~= nil and behind_space(text, stop) == #text + 1
end
