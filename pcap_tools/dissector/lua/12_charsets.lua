-- Is a text what its character set allows, and if not, from which byte on? The twin of pcap_tools/codec/charsets.py.
local ts = ...
local byte, find = string.byte, string.find

local charsets = {}
ts.charsets = charsets

local function is_follower(value)
    return value ~= nil and value >= 0x80 and value <= 0xBF
end

-- How many bytes a strict UTF-8 sequence at `at` has; nil where it is broken.
local function utf8_sequence(text, at)
    local first, second, third, fourth = byte(text, at, at + 3)
    if first < 0x80 then
        return 1
    elseif first < 0xC2 or first > 0xF4 or not is_follower(second) then
        return nil
    elseif first < 0xE0 then
        return 2
    elseif first < 0xF0 then
        local overlong, surrogate = first == 0xE0 and second < 0xA0, first == 0xED and second > 0x9F
        return is_follower(third) and not overlong and not surrogate and 3 or nil
    end
    local overlong, beyond = first == 0xF0 and second < 0x90, first == 0xF4 and second > 0x8F
    return is_follower(third) and is_follower(fourth) and not overlong and not beyond and 4 or nil
end

-- The same for what DataOutputStream.writeUTF writes.
local function java_sequence(text, at)
    local first, second, third = byte(text, at, at + 2)
    if first < 0x80 then
        return 1
    elseif first < 0xC0 or first >= 0xF0 or not is_follower(second) then
        return nil
    elseif first < 0xE0 then
        return 2
    end
    return is_follower(third) and 3 or nil
end

-- Where the ASCII at `at` ends. An anchored pattern, since Lua starts an unanchored one anew at every byte.
local function after_ascii(text, at)
    local _, last = find(text, "^[\0-\127]*", at)
    return last + 1
end

local function first_broken(text, sequence)
    local at, size = after_ascii(text, 1), #text
    while at <= size do
        local step = sequence(text, at)
        if not step then
            return at - 1
        end
        at = after_ascii(text, at + step)
    end
    return nil
end

-- By the names in the tables: the offset of the first byte that does not belong, or nil.
charsets.first_bad = {
    ascii = function(text)
        local at = after_ascii(text, 1)
        return at <= #text and at - 1 or nil
    end,
    utf8 = function(text)
        return first_broken(text, utf8_sequence)
    end,
    java = function(text)
        return first_broken(text, java_sequence)
    end,
}

-- Can a reader make sense of it: UTF-8 without control characters?
function charsets.is_readable(text)
    return not find(text, "[\0-\8\14-\31\127]") and not first_broken(text, utf8_sequence)
end
