-- dissector.lua: publish/subscribe protocols over UDP in Wireshark and tshark.
--
-- Put this file into Wireshark's personal Lua plugins folder (Help > About > Folders), or run
--     tshark -X lua_script:dissector.lua -r capture.pcap
--
-- It is written by `topicshark dissector` from the parts in pcap_tools/dissector/lua: a hand-written engine, and one
-- generated block with the tables of the dialects. The decoding works on plain strings and needs no Wireshark; what it
-- does is told in docs/decoding.md. It runs on Lua 5.2 (Wireshark 4.0) to Lua 5.4 (Wireshark 4.4 and later).
--
-- Each part is a function of its own that takes the one shared table and adds to it.

local shared = { arguments = { ... } }

-- ==================== 10_numbers.lua ===============================================================================
;(function(...)
-- Whole numbers of up to 64 bits, exact in every Lua.
--
-- Lua 5.2 has only doubles, so a value of 10^15 and more is kept as a string of decimal digits. Both kinds can be table
-- keys, and `text` writes both without a fraction or an exponent.
local ts = ...
local byte, format, reverse, floor = string.byte, string.format, string.reverse, math.floor

local numbers = {}
ts.numbers = numbers

local WORD = 4294967296
local POWER = { [0] = 1 } -- integers in Lua 5.3 and later, where 2^n would be a float
for bit = 1, 48 do
    POWER[bit] = POWER[bit - 1] * 2
end

-- The decimal digits of high * 2^32 + low, by long division of 16-bit limbs.
local function decimal(high, low)
    local limbs = { floor(high / 65536), high % 65536, floor(low / 65536), low % 65536 }
    local digits = ""
    while limbs[1] + limbs[2] + limbs[3] + limbs[4] > 0 do
        local rest = 0
        for place = 1, 4 do
            local part = rest * 65536 + limbs[place]
            limbs[place] = floor(part / 10000)
            rest = part % 10000
        end
        digits = format("%04d", rest) .. digits
    end
    return (digits:gsub("^0+", ""))
end

local function from_words(high, low, negative)
    if high < 232830 then -- 232830 * 2^32 is just below 10^15
        local value = high * WORD + low
        return negative and -value or value
    end
    local digits = decimal(high, low)
    if #digits < 16 then
        local value = high * WORD + low
        return negative and -value or value
    end
    return negative and "-" .. digits or digits
end

local function big_endian(raw, first, last)
    local value = 0
    for at = first, last do
        value = value * 256 + byte(raw, at)
    end
    return value
end

-- Bytes as an unsigned number, the highest byte first.
function numbers.unsigned(raw, little)
    if little then
        raw = reverse(raw)
    end
    local size = #raw
    if size <= 6 then
        return big_endian(raw, 1, size)
    end
    return from_words(big_endian(raw, 1, size - 4), big_endian(raw, size - 3, size))
end

-- Bytes as a number in two's complement.
function numbers.signed(raw, little)
    if little then
        raw = reverse(raw)
    end
    local size = #raw
    if byte(raw, 1) < 128 then
        return numbers.unsigned(raw)
    end
    if size <= 6 then
        return big_endian(raw, 1, size) - POWER[8 * size]
    end
    local high = POWER[8 * (size - 4)] - 1 - big_endian(raw, 1, size - 4)
    local low = WORD - big_endian(raw, size - 3, size) -- inverted, plus one
    if low == WORD then
        high, low = high + 1, 0
    end
    return from_words(high, low, true)
end

-- `bits` bits of a group of bytes, `shift` bits above its lowest one.
function numbers.bits(raw, shift, bits)
    local size = #raw
    if size <= 6 then
        return floor(big_endian(raw, 1, size) / POWER[shift]) % POWER[bits]
    end
    local high, low = big_endian(raw, 1, size - 4), big_endian(raw, size - 3, size)
    if shift >= 32 then
        high, low = 0, floor(high / POWER[shift - 32])
    else
        high, low = floor(high / POWER[shift]), floor(low / POWER[shift]) + high % POWER[shift] * POWER[32 - shift]
    end
    if bits <= 32 then
        return low % POWER[bits]
    end
    return from_words(high % POWER[bits - 32], low)
end

-- Decimal digits, as characters (zero = 48) or as bytes (zero = 0); nil if one of them is none.
function numbers.digits(raw, zero)
    local value, text = 0, ""
    local long = #raw > 15
    for at = 1, #raw do
        local digit = byte(raw, at) - zero
        if digit < 0 or digit > 9 then
            return nil
        end
        if long then
            text = text .. format("%d", digit)
        else
            value = value * 10 + digit
        end
    end
    if not long then
        return value
    end
    text = text:gsub("^0+", "")
    if #text > 15 then
        return text
    end
    for at = 1, #text do
        value = value * 10 + byte(text, at) - 48
    end
    return value
end

-- A number as its decimal digits.
function numbers.text(value)
    if type(value) == "string" then
        return value
    end
    if value < 10000 and value >= 0 then -- what Lua writes the same way in all versions, and fast
        return tostring(value)
    end
    return format("%.0f", value)
end
end)(shared)

-- ==================== 12_charsets.lua ==============================================================================
;(function(...)
-- Is a text what its character set allows, and if not, from which byte on? The twin of pcap_tools/charsets.py.
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

local function first_broken(text, sequence)
    local at = find(text, "[\128-\255]")
    while at and at <= #text do
        local size = sequence(text, at)
        if not size then
            return at - 1
        end
        at = find(text, "[\128-\255]", at + size)
    end
    return nil
end

-- By the names in the tables: the offset of the first byte that does not belong, or nil.
charsets.first_bad = {
    ascii = function(text)
        local at = find(text, "[\128-\255]")
        return at and at - 1
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
end)(shared)

-- ==================== 14_walk.lua ==================================================================================
;(function(...)
-- Reading a datagram by one layout: the walk of docs/decoding.md, step by step. Works on plain strings.
--
-- A walk is a table that is used again and again, so that reading allocates next to nothing:
--     count          how many steps were read
--     values[i], starts[i], stops[i], firsts[i], lasts[i]
--                    of step i: its value; its range; the range of the value alone (no length in front, no delimiter).
--                    Offsets count from 0, and stops and lasts lie one behind the last byte, as in the codec.
--     layout, selected, padding, error, error_offset
local ts = ...
local numbers = ts.numbers
local byte, find, sub, rep = string.byte, string.find, string.sub, string.rep

local walk = {}
ts.walk = walk

function walk.new()
    return { values = {}, starts = {}, stops = {}, firsts = {}, lasts = {}, count = 0 }
end

local NULS = {}
for _, size in ipairs({ 4096, 256, 16 }) do
    NULS[#NULS + 1] = { size = size, nuls = rep("\0", size) }
end

-- Where the data ends without trailing NULs. In chunks, since a datagram may have 65,000 of them.
local function content_end(w)
    local stop = w.content
    if stop then
        return stop
    end
    local data = w.data
    stop = #data
    for _, chunk in ipairs(NULS) do
        local size = chunk.size
        while stop >= size and byte(data, stop) == 0 and sub(data, stop - size + 1, stop) == chunk.nuls do
            stop = stop - size
        end
    end
    while stop > 0 and byte(data, stop) == 0 do
        stop = stop - 1
    end
    w.content = stop
    return stop
end

local function note(w, code, offset)
    if not w.error then
        w.error, w.error_offset = code, offset
    end
end

-- NULs at the end are padding only where no length says that they belong to the message.
local function may_be_padded(w)
    return w.nul_padding and not w.end_told and not w.run_last
end

local function end_of_rest(w)
    if may_be_padded(w) then
        local stop = content_end(w)
        return stop > w.at and stop or w.at
    end
    return w.run_end or w.stop
end

-- -- reading one step: value, or nil and a fatal error with its offset ---------------------------------------------

local function read_number(step, decode)
    local size = step.size
    return function(w)
        local at = w.at
        if size > (w.run_end or w.stop) - at then
            return nil, "incomplete", at
        end
        w.at = at + size
        return decode(sub(w.data, at + 1, at + size))
    end
end

local function read_byte(w)
    local at = w.at
    if at >= (w.run_end or w.stop) then
        return nil, "incomplete", at
    end
    w.at = at + 1
    return byte(w.data, at + 1)
end

local function reader_of_uint(step)
    if step.size == 1 then
        return read_byte
    end
    return read_number(step, function(raw)
        return numbers.unsigned(raw, step.little)
    end)
end

local function reader_of_int(step)
    return read_number(step, function(raw)
        return numbers.signed(raw, step.little)
    end)
end

local function reader_of_bits(step)
    local read = read_number(step, function(raw)
        return numbers.bits(raw, step.shift, step.bits)
    end)
    return function(w)
        local at = w.at
        local value, code, offset = read(w)
        if value and not step.closes_group then
            w.at = at
        end
        return value, code, offset
    end
end

local function reader_of_digits(step)
    local read = read_number(step, function(raw)
        return raw
    end)
    return function(w)
        local at = w.at
        local raw, code, offset = read(w)
        if not raw then
            return nil, code, offset
        end
        local value = numbers.digits(raw, step.binary_digits and 0 or 48)
        if not value then
            return nil, "bad-value", at
        end
        return value
    end
end

local function reader_of_magic(step)
    local read = read_number(step, function(raw)
        return raw
    end)
    return function(w)
        local at = w.at
        local raw, code, offset = read(w)
        if raw and raw ~= step.literal then
            return nil, "bad-magic", at
        end
        return raw, code, offset
    end
end

local function reader_of_fixed_text(step)
    return read_number(step, function(raw)
        return raw
    end)
end

local function reader_until(step)
    local literal, keeps_delimiter = step.literal, step.or_end and step.is_last
    return function(w)
        local at, limit = w.at, w.run_end or w.stop
        local first, last = find(w.data, literal, at + 1, true)
        if first and last <= limit then
            w.last = first - 1
            if keeps_delimiter then
                w.at = first - 1
            else
                w.at = last
                w.after_delimiter = true
            end
            return sub(w.data, at + 1, first - 1)
        end
        if not step.or_end then
            return nil, "no-delimiter", at
        end
        w.after_open_end = true
        w.at = end_of_rest(w)
        return sub(w.data, at + 1, w.at)
    end
end

local function read_rest(w)
    local at = w.at
    w.at = end_of_rest(w)
    return sub(w.data, at + 1, w.at)
end

local function reader_of_prefixed(step)
    local size, prefix = step.size, step.prefix
    local function length_of(raw)
        if prefix == "ascii" then
            return numbers.digits(raw, 48)
        elseif prefix == "signed" then
            return numbers.signed(raw)
        end
        return numbers.unsigned(raw, prefix == "unsigned_little")
    end
    return function(w)
        local at, limit = w.at, w.run_end or w.stop
        if size > limit - at then
            return nil, "incomplete", at
        end
        local length = length_of(sub(w.data, at + 1, at + size))
        if not length or length < 0 then
            return nil, "bad-length", at
        end
        local first = at + size
        if length > limit - first then
            return nil, "incomplete", at
        end
        w.first, w.at = first, first + length
        return sub(w.data, first + 1, w.at)
    end
end

local READERS = {
    uint = reader_of_uint,
    int = reader_of_int,
    bits = reader_of_bits,
    digits = reader_of_digits,
    magic = reader_of_magic,
    text = reader_of_fixed_text,
    bytes = reader_of_fixed_text,
}

-- The function that reads this step. A kind that is not known here refuses the dialect, it never skips a field.
function walk.reader(step)
    if step.extent == "rest" then
        return read_rest
    elseif step.extent == "until" then
        return reader_until(step)
    elseif step.extent == "prefix" then
        return reader_of_prefixed(step)
    end
    local make = READERS[step.kind]
    if not make then
        error("dissector.lua: unknown kind of field: " .. tostring(step.kind))
    end
    return make(step)
end

-- -- what a length says ---------------------------------------------------------------------------------------------

local function open_run(w, first, size, last_step, told_at)
    local stop = first + size
    if stop < w.at or stop > w.stop then
        note(w, "bad-length", told_at)
        stop = w.stop
    end
    w.run_last, w.run_end, w.run_told_at = last_step, stop, told_at
end

local function tell_end(w, step, value, start)
    local told = (step.counts == "rest" and w.at or 0) + value
    if told < w.at or told > w.stop then
        note(w, "bad-length", start)
        return
    end
    if told < w.stop then
        if may_be_padded(w) and content_end(w) <= told then
            w.padding = w.padding + w.stop - told
        else
            note(w, "bad-length", start)
        end
    end
    w.stop, w.end_told = told, true
end

local function apply_length(w, index, step, value, start)
    value = tonumber(value) -- a number too big for a double is too big for a datagram, however it is rounded
    if step.counts ~= "span" then
        tell_end(w, step, value, start)
    elseif step.span_first <= index then
        open_run(w, w.starts[step.span_first], value, step.span_last, start)
    end
end

local function close_run(w)
    if w.at ~= w.run_end then
        note(w, "bad-length", w.run_told_at)
        w.at = w.run_end
    end
    w.run_last, w.run_end = nil, nil
end

local function judge(w, step, value, first)
    if step.allowed and not step.allowed[value] then
        note(w, "bad-value", first)
    end
    if step.first_bad then
        local bad = step.first_bad(value)
        if bad then
            note(w, "bad-text", first + bad)
        end
    end
end

-- -- the walk -------------------------------------------------------------------------------------------------------

local function is_absent(w, step)
    if w.at < (w.run_end or w.stop) or w.after_delimiter then
        return false
    elseif step.kind == "bits" then
        return step.opens_group
    end
    return step.extent ~= "rest" or w.after_open_end
end

local function stop_here(w, code, offset)
    note(w, code, offset)
    if not w.selected then -- why it was not selected counts for more than what was noted on the way
        w.error, w.error_offset = code, offset
    end
end

local function finish(w)
    if w.at < w.stop then
        if may_be_padded(w) and content_end(w) <= w.at then
            w.padding = w.padding + w.stop - w.at
        else
            note(w, "trailing-bytes", w.at)
        end
    end
end

-- Read `data` by `layout` into the walk `w`. Steps that are `plain` need no look after they are read.
function walk.run(w, layout, data, nul_padding)
    w.layout, w.data, w.nul_padding = layout, data, nul_padding
    w.at, w.stop, w.count, w.padding = 0, #data, 0, 0
    w.content, w.run_last, w.run_end, w.end_told, w.error, w.error_offset = nil, nil, nil, false, nil, nil
    w.after_delimiter, w.after_open_end = false, false
    w.selected = layout.last_guard == 0
    local steps = layout.steps
    for index = 1, #steps do
        local step = steps[index]
        local length_step = step.span_length
        if length_step and length_step < index and not w.run_last then
            open_run(w, w.at, tonumber(w.values[length_step]), steps[length_step].span_last, w.starts[length_step])
        end
        if step.optional and is_absent(w, step) then
            break
        end
        local start = w.at
        w.after_delimiter, w.after_open_end, w.first, w.last = false, false, start, nil
        w.starts[index] = start
        local value, code, offset = step.read(w)
        if value == nil then
            return stop_here(w, code, offset)
        end
        w.count = index
        w.values[index], w.firsts[index] = value, w.first
        w.stops[index] = step.kind == "bits" and start + step.size or w.at
        w.lasts[index] = w.last or w.stops[index]
        if not step.plain then
            if step.guard and not step.guard[value] then
                return stop_here(w, "unknown-type", start)
            end
            if index == layout.last_guard then
                w.selected = true
            end
            judge(w, step, value, w.first)
            if step.counts then
                apply_length(w, index, step, value, start)
            end
        end
        if w.run_last == index then
            close_run(w)
        end
    end
    finish(w)
end
end)(shared)

-- ==================== 16_decode.lua ================================================================================
;(function(...)
-- Decoding a datagram by a dialect: which form, which layout, and what the columns say.
--
--     local w = ts.decode(dialect, data)   -- valid until the next call
--     w.form.name, w.message, w.meaning, w.error, w.error_offset, w.padding, w.values[i] ...
local ts = ...
local walk, numbers = ts.walk, ts.numbers
local byte = string.byte

local NOTHING = { message = nil, meaning = nil, steps = {}, last_guard = 0 }

-- Read by each layout until one is selected; else the failure that got furthest. Two walks take turns.
local function best_of_form(form, layouts, data, current, spare)
    local best = nil
    for index = 1, #layouts do
        walk.run(current, layouts[index], data, form.nul_padding)
        if current.selected then
            return current, best or spare
        end
        if not best then
            best, current = current, spare
        elseif current.error_offset > best.error_offset then
            best, current = current, best
        end
    end
    return best, current
end

-- A form that selected a message goes before one that did not, then the greater offset, then the earlier form.
local function got_further(w, best)
    if w.selected ~= best.selected then
        return w.selected
    end
    return w.error_offset > best.error_offset
end

local pool = { walk.new(), walk.new(), walk.new() }

local function decode_best(dialect, data)
    local best, current, spare = nil, pool[1], pool[2]
    for index = 1, #dialect.forms do
        local form = dialect.forms[index]
        local layouts = form.by_first_byte and form.by_first_byte[byte(data, 1)] or form.layouts
        local w, free = best_of_form(form, layouts, data, current, spare)
        w.form = form
        if not w.error then
            return w
        end
        if not best then
            best, current, spare = w, free, pool[3]
        elseif got_further(w, best) then
            best, current, spare = w, free, best
        else
            current, spare = w, free
        end
    end
    return best
end

local function empty(dialect)
    local w = pool[1]
    w.layout, w.form, w.count, w.padding, w.selected = NOTHING, dialect.forms[1], 0, 0, false
    w.error, w.error_offset = "empty", 0
    return w
end

-- The value of a column (topic, filter, payload) as text, and the step it comes from; nil where there is none.
local function column(w, index)
    if not index or index > w.count then
        return nil
    end
    local value, step = w.values[index], w.layout.steps[index]
    if step.is_number then
        value = step.names and step.names[value] or numbers.text(value)
    end
    return value
end

-- What this datagram says. `length` is its true length where the capture cut it short. Never fails.
function ts.decode(dialect, data, length)
    local w = #data == 0 and empty(dialect) or decode_best(dialect, data)
    if length and length > #data then
        w.error, w.error_offset = "cut", #data
    end
    local layout = w.layout
    w.length = length or #data
    w.topic, w.filter, w.payload, w.retain = nil, nil, nil, nil
    if not w.selected then
        w.message, w.meaning = nil, nil
        return w
    end
    w.message, w.meaning = layout.message, layout.meaning
    w.topic, w.filter, w.payload = column(w, layout.topic), column(w, layout.filter), column(w, layout.payload)
    if layout.retain and layout.retain <= w.count then
        local value = w.values[layout.retain]
        w.retain = value ~= 0 and value ~= ""
    end
    return w
end
end)(shared)

-- >>> generated by `topicshark dissector` from the dialect files; do not edit
;(function(...)
-- luacheck: push no max line length
local ts = ...
ts.dialects = {
    {
        name = "colon",
        title = "Type byte, retain byte, topic and payload split by a colon",
        ports = { broker = { 50000 }, client = { 50000 } },
        topics = { kind = "text", separator = "/", wildcards = { ["*"] = "any-run" }, case_sensitive = true },
        broker = { forward = { PUBLISH = { same_bytes = true } }, order = { publish = { "forward", "ack" }, subscribe = { "retained", "ack" }, unsubscribe = { "ack" } }, copies = "per-filter", retained = "matching", forward_from = "broker" },
        client = { acks = {}, may_change = { "retain" } },
        forms = {
            {
                name = "documented", nul_padding = true,
                layouts = {
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 1, topic = 3, payload = 4, retain = 2,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 1 } },
                            { name = "retain", kind = "uint", size = 1, allowed = { 0, 1 }, names = { [0] = "no", [1] = "yes" } },
                            { name = "topic", kind = "text", extent = "until", literal = ":", charset = "utf8" },
                            { name = "payload", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBACK", meaning = "ack", last_guard = 1, sender = "broker", acks = { "PUBLISH" }, acks_by = "order",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 2 } },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 1, filter = 3, retain = 2, sender = "client",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 3 } },
                            { name = "retain", kind = "uint", size = 1, allowed = { 0, 1 }, names = { [0] = "no", [1] = "yes" } },
                            { name = "filter", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUBACK", meaning = "ack", last_guard = 1, sender = "broker", acks = { "SUBSCRIBE" }, acks_by = "order",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 4 } },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 1, filter = 3, retain = 2, sender = "client",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 5 } },
                            { name = "retain", kind = "uint", size = 1, allowed = { 0, 1 }, names = { [0] = "no", [1] = "yes" } },
                            { name = "filter", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "UNSUBACK", meaning = "ack", last_guard = 1, sender = "broker", acks = { "UNSUBSCRIBE" }, acks_by = "order",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 6 } },
                        },
                    },
                },
            },
        },
    },
    {
        name = "mqttsn",
        title = "MQTT-SN 1.2 over UDP",
        ports = { broker = { 1883, 1884, 1885 } },
        topics = { kind = "number", separator = "/", wildcards = { ["+"] = "one-level", ["#"] = "rest-levels" }, case_sensitive = true, number = "topic_id", named_by = "REGISTER" },
        broker = { forward = { PUBLISH = { becomes = "PUBLISH", fresh = { "topic_id", "message_id" } } }, order = { subscribe = { "ack", "retained" } }, copies = "per-subscriber", retained = "matching", forward_from = "broker" },
        client = { acks = { "PUBLISH", "REGISTER" }, may_change = { "dup" } },
        forms = {
            {
                name = "short", nul_padding = false,
                layouts = {
                    {
                        message = "ADVERTISE", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 0 } },
                            { name = "gateway_id", kind = "uint", size = 1 },
                            { name = "duration", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SEARCHGW", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 1 } },
                            { name = "radius", kind = "uint", size = 1 },
                        },
                    },
                    {
                        message = "GWINFO", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 2 } },
                            { name = "gateway_id", kind = "uint", size = 1 },
                            { name = "gateway", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "CONNECT", meaning = "other", last_guard = 2, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 4 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "protocol_id", kind = "uint", size = 1, allowed = { 1 }, names = { [1] = "mqttsn_1_2" } },
                            { name = "duration", kind = "uint", size = 2 },
                            { name = "client_id", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "CONNACK", meaning = "ack", last_guard = 2, acks = { "CONNECT" }, acks_by = "order",
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 5 } },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "WILLTOPICREQ", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 6 } },
                        },
                    },
                    {
                        message = "WILLTOPIC", meaning = "other", last_guard = 2, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 7 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true, optional = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, optional = true, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4, optional = true },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3, optional = true },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2, optional = true },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, optional = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "will_topic", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "WILLMSGREQ", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 8 } },
                        },
                    },
                    {
                        message = "WILLMSG", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 9 } },
                            { name = "will_message", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "REGISTER", meaning = "create", last_guard = 2, topic = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 10 } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "REGACK", meaning = "ack", last_guard = 2, acks = { "REGISTER" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 11 } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 8, topic = 9, payload = 11, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 12 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 2 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "short_topic", kind = "text", size = 2, charset = "utf8" },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "data", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 2, topic = 9, payload = 11, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 12 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "data", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBACK", meaning = "ack", last_guard = 2, acks = { "PUBLISH" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 13 } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "PUBCOMP", meaning = "ack", last_guard = 2, acks = { "PUBREL" }, acks_by = "message_id", acks_by_step = 3,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 14 } },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PUBREC", meaning = "ack", last_guard = 2, acks = { "PUBLISH" }, acks_by = "message_id", acks_by_step = 3,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 15 } },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PUBREL", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 16 } },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 8, filter = 10, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 18 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 1 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 2, filter = 10, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 18 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUBACK", meaning = "ack", last_guard = 2, retain = 5, acks = { "SUBSCRIBE" }, acks_by = "message_id", acks_by_step = 10,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 19 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 8, filter = 10, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 20 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 1 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 2, filter = 10, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 20 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "UNSUBACK", meaning = "ack", last_guard = 2, acks = { "UNSUBSCRIBE" }, acks_by = "message_id", acks_by_step = 3,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 21 } },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PINGREQ", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 22 } },
                            { name = "client_id", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "PINGRESP", meaning = "ack", last_guard = 2, acks = { "PINGREQ" }, acks_by = "order",
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 23 } },
                        },
                    },
                    {
                        message = "DISCONNECT", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 24 } },
                            { name = "duration", kind = "uint", size = 2, optional = true },
                        },
                    },
                    {
                        message = "WILLTOPICUPD", meaning = "other", last_guard = 2, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 26 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true, optional = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, optional = true, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4, optional = true },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3, optional = true },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2, optional = true },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, optional = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "will_topic", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "WILLTOPICRESP", meaning = "ack", last_guard = 2, acks = { "WILLTOPICUPD" }, acks_by = "order",
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 27 } },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "WILLMSGUPD", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 28 } },
                            { name = "will_message", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "WILLMSGRESP", meaning = "ack", last_guard = 2, acks = { "WILLMSGUPD" }, acks_by = "order",
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 29 } },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "FORWARDED", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "header_length", kind = "uint", size = 1, counts = "span", span_first = 1, span_last = 4, span_length = 1 },
                            { name = "type", kind = "uint", size = 1, guard = { 254 } },
                            { name = "control", kind = "uint", size = 1 },
                            { name = "node_id", kind = "bytes", extent = "rest" },
                            { name = "inner", kind = "bytes", extent = "rest" },
                        },
                    },
                },
            },
            {
                name = "long", nul_padding = false,
                layouts = {
                    {
                        message = "ADVERTISE", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 0 } },
                            { name = "gateway_id", kind = "uint", size = 1 },
                            { name = "duration", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SEARCHGW", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 1 } },
                            { name = "radius", kind = "uint", size = 1 },
                        },
                    },
                    {
                        message = "GWINFO", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 2 } },
                            { name = "gateway_id", kind = "uint", size = 1 },
                            { name = "gateway", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "CONNECT", meaning = "other", last_guard = 3, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 4 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "protocol_id", kind = "uint", size = 1, allowed = { 1 }, names = { [1] = "mqttsn_1_2" } },
                            { name = "duration", kind = "uint", size = 2 },
                            { name = "client_id", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "CONNACK", meaning = "ack", last_guard = 3, acks = { "CONNECT" }, acks_by = "order",
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 5 } },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "WILLTOPICREQ", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 6 } },
                        },
                    },
                    {
                        message = "WILLTOPIC", meaning = "other", last_guard = 3, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 7 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true, optional = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, optional = true, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4, optional = true },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3, optional = true },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2, optional = true },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, optional = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "will_topic", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "WILLMSGREQ", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 8 } },
                        },
                    },
                    {
                        message = "WILLMSG", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 9 } },
                            { name = "will_message", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "REGISTER", meaning = "create", last_guard = 3, topic = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 10 } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "REGACK", meaning = "ack", last_guard = 3, acks = { "REGISTER" }, acks_by = "message_id", acks_by_step = 5,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 11 } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 9, topic = 10, payload = 12, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 12 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 2 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "short_topic", kind = "text", size = 2, charset = "utf8" },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "data", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 3, topic = 10, payload = 12, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 12 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "data", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBACK", meaning = "ack", last_guard = 3, acks = { "PUBLISH" }, acks_by = "message_id", acks_by_step = 5,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 13 } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "PUBCOMP", meaning = "ack", last_guard = 3, acks = { "PUBREL" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 14 } },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PUBREC", meaning = "ack", last_guard = 3, acks = { "PUBLISH" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 15 } },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PUBREL", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 16 } },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 9, filter = 11, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 18 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 1 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 3, filter = 11, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 18 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUBACK", meaning = "ack", last_guard = 3, retain = 6, acks = { "SUBSCRIBE" }, acks_by = "message_id", acks_by_step = 11,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 19 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 9, filter = 11, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 20 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 1 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 3, filter = 11, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 20 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "UNSUBACK", meaning = "ack", last_guard = 3, acks = { "UNSUBSCRIBE" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 21 } },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PINGREQ", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 22 } },
                            { name = "client_id", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "PINGRESP", meaning = "ack", last_guard = 3, acks = { "PINGREQ" }, acks_by = "order",
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 23 } },
                        },
                    },
                    {
                        message = "DISCONNECT", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 24 } },
                            { name = "duration", kind = "uint", size = 2, optional = true },
                        },
                    },
                    {
                        message = "WILLTOPICUPD", meaning = "other", last_guard = 3, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 26 } },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true, optional = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, optional = true, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4, optional = true },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3, optional = true },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2, optional = true },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, optional = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" } },
                            { name = "will_topic", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "WILLTOPICRESP", meaning = "ack", last_guard = 3, acks = { "WILLTOPICUPD" }, acks_by = "order",
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 27 } },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "WILLMSGUPD", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 28 } },
                            { name = "will_message", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "WILLMSGRESP", meaning = "ack", last_guard = 3, acks = { "WILLMSGUPD" }, acks_by = "order",
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001" },
                            { name = "length", kind = "uint", size = 2, counts = "datagram" },
                            { name = "type", kind = "uint", size = 1, guard = { 29 } },
                            { name = "return_code", kind = "uint", size = 1, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" } },
                        },
                    },
                    {
                        message = "FORWARDED", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "header_length", kind = "uint", size = 1, counts = "span", span_first = 1, span_last = 4, span_length = 1 },
                            { name = "type", kind = "uint", size = 1, guard = { 254 } },
                            { name = "control", kind = "uint", size = 1 },
                            { name = "node_id", kind = "bytes", extent = "rest" },
                            { name = "inner", kind = "bytes", extent = "rest" },
                        },
                    },
                },
            },
        },
    },
    {
        name = "portdigits",
        title = "Five port digits, role digit, two topic digits, text; no acknowledgements",
        ports = { broker = { 12345 }, subscriber = { 12346, 12349 } },
        topics = { kind = "code", case_sensitive = true },
        broker = { forward = { PUBLISH = { same_bytes = true } }, order = { publish = { "forward" } }, copies = "per-subscription", retained = "none", subscriber_port = "port", forward_from = "ephemeral" },
        client = { acks = {}, may_change = {} },
        forms = {
            {
                name = "documented", nul_padding = true,
                layouts = {
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 2, filter = 3,
                        steps = {
                            { name = "port", kind = "digits", size = 5 },
                            { name = "role", kind = "digits", size = 1, guard = { 0 }, allowed = { 0, 1 }, names = { [0] = "subscriber", [1] = "publisher" } },
                            { name = "topic", kind = "digits", size = 2, allowed = { 1, 2, 3 }, names = { [1] = "temperature", [2] = "wind speed", [3] = "humidity" } },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 2, topic = 3, payload = 4,
                        steps = {
                            { name = "port", kind = "digits", size = 5 },
                            { name = "role", kind = "digits", size = 1, guard = { 1 }, allowed = { 0, 1 }, names = { [0] = "subscriber", [1] = "publisher" } },
                            { name = "topic", kind = "digits", size = 2, allowed = { 1, 2, 3 }, names = { [1] = "temperature", [2] = "wind speed", [3] = "humidity" } },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                },
            },
            {
                name = "java", nul_padding = true,
                layouts = {
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 4, filter = 3,
                        steps = {
                            { name = "port", kind = "digits", size = 5, binary_digits = true },
                            { name = "role", kind = "digits", size = 1, binary_digits = true, guard = { 0 }, allowed = { 0, 1 }, names = { [0] = "subscriber", [1] = "publisher" } },
                            { name = "topic", kind = "digits", size = 2, binary_digits = true, allowed = { 1, 2, 3 }, names = { [1] = "temperature", [2] = "wind speed", [3] = "humidity" } },
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w" },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest" },
                            { name = "text", kind = "text", extent = "prefix", size = 2, prefix = "unsigned", charset = "java" },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 4, topic = 3, payload = 6,
                        steps = {
                            { name = "port", kind = "digits", size = 5, binary_digits = true },
                            { name = "role", kind = "digits", size = 1, binary_digits = true, guard = { 1 }, allowed = { 0, 1 }, names = { [0] = "subscriber", [1] = "publisher" } },
                            { name = "topic", kind = "digits", size = 2, binary_digits = true, allowed = { 1, 2, 3 }, names = { [1] = "temperature", [2] = "wind speed", [3] = "humidity" } },
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w" },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest" },
                            { name = "text", kind = "text", extent = "prefix", size = 2, prefix = "unsigned", charset = "java" },
                        },
                    },
                },
            },
        },
    },
    {
        name = "rolebyte",
        title = "A type byte that says who speaks, a length byte, topic and value split by a space",
        ports = { broker = { 50001 }, dashboard = { 50002 }, sensor = { 50003, 50004, 50005, 50006 }, actuator = { 50007, 50008, 50009, 50010 } },
        topics = { kind = "text", separator = "/", case_sensitive = true },
        broker = { forward = { SENSOR_PUBLISH = { becomes = "BROKER" }, DASHBOARD_PUBLISH = { becomes = "BROKER" }, ACTUATOR_PUBLISH = { becomes = "BROKER", topic_without = "Instructions" } }, order = { publish = { "ack", "forward" }, subscribe = { "ack" } }, copies = "per-subscriber", retained = "none", forward_from = "broker" },
        client = { acks = { "BROKER" }, may_change = {} },
        forms = {
            {
                name = "documented", nul_padding = true,
                layouts = {
                    {
                        message = "DASHBOARD_SUBSCRIBE", meaning = "subscribe", last_guard = 1, filter = 3, sender = "dashboard",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 1 } },
                            { name = "length", kind = "uint", size = 1, counts = "rest" },
                            { name = "filter", kind = "text", extent = "until", literal = " ", or_end = true, charset = "utf8" },
                            { name = "extra", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "BROKER", meaning = "deliver", last_guard = 1, topic = 3, payload = 4, sender = "broker",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 2 } },
                            { name = "length", kind = "uint", size = 1, counts = "rest" },
                            { name = "topic", kind = "text", extent = "until", literal = " ", charset = "utf8" },
                            { name = "value", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SENSOR_PUBLISH", meaning = "publish", last_guard = 1, topic = 3, payload = 4, sender = "sensor",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 3 } },
                            { name = "length", kind = "uint", size = 1, counts = "rest" },
                            { name = "topic", kind = "text", extent = "until", literal = " ", charset = "utf8" },
                            { name = "value", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "ACTUATOR_SUBSCRIBE", meaning = "subscribe", last_guard = 1, filter = 3, sender = "actuator",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 4 } },
                            { name = "length", kind = "uint", size = 1, counts = "rest" },
                            { name = "filter", kind = "text", extent = "until", literal = " ", or_end = true, charset = "utf8" },
                            { name = "extra", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "ACTUATOR_PUBLISH", meaning = "publish", last_guard = 1, topic = 3, payload = 4, sender = "actuator",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 5 } },
                            { name = "length", kind = "uint", size = 1, counts = "rest" },
                            { name = "topic", kind = "text", extent = "until", literal = " ", charset = "utf8" },
                            { name = "value", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "DASHBOARD_PUBLISH", meaning = "publish", last_guard = 1, topic = 3, payload = 4, sender = "dashboard",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 6 } },
                            { name = "length", kind = "uint", size = 1, counts = "rest" },
                            { name = "topic", kind = "text", extent = "until", literal = " ", charset = "utf8" },
                            { name = "value", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "ACK", meaning = "ack", last_guard = 1, acks = { "any" }, acks_by = "order",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 7 } },
                            { name = "code", kind = "uint", size = 1, allowed = { 10 }, names = { [10] = "all_ok" } },
                        },
                    },
                },
            },
        },
    },
    {
        name = "topicbyte",
        title = "Type byte, topic byte, text; everything is acknowledged",
        ports = { broker = { 50000 }, server = { 50001 }, client = { 50002 }, subscriber = { 50003 } },
        topics = { kind = "code", case_sensitive = true },
        broker = { forward = { MESSAGE = { same_bytes = true } }, order = { publish = { "ack", "forward" }, subscribe = { "ack" } }, copies = "per-subscription", retained = "none", forward_from = "broker" },
        client = { acks = {}, may_change = {} },
        forms = {
            {
                name = "documented", nul_padding = true,
                layouts = {
                    {
                        message = "ACK", meaning = "ack", last_guard = 1, acks = { "any" }, acks_by = "order",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 1 } },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" } },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUB", meaning = "subscribe", last_guard = 1, filter = 2,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 2 } },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" } },
                        },
                    },
                    {
                        message = "MESSAGE", meaning = "publish", last_guard = 1, topic = 2, payload = 3,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 3 } },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" } },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                },
            },
            {
                name = "java", nul_padding = true,
                layouts = {
                    {
                        message = "ACK", meaning = "ack", last_guard = 3, acks = { "any" }, acks_by = "order",
                        steps = {
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w" },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest" },
                            { name = "type", kind = "uint", size = 1, guard = { 1 } },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" } },
                            { name = "text", kind = "text", extent = "prefix", size = 2, prefix = "unsigned", charset = "java" },
                        },
                    },
                    {
                        message = "SUB", meaning = "subscribe", last_guard = 3, filter = 4,
                        steps = {
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w" },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest" },
                            { name = "type", kind = "uint", size = 1, guard = { 2 } },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" } },
                        },
                    },
                    {
                        message = "MESSAGE", meaning = "publish", last_guard = 3, topic = 4, payload = 5,
                        steps = {
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w" },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest" },
                            { name = "type", kind = "uint", size = 1, guard = { 3 } },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" } },
                            { name = "text", kind = "text", extent = "prefix", size = 2, prefix = "unsigned", charset = "java" },
                        },
                    },
                },
            },
        },
    },
    {
        name = "topicnumber",
        title = "Fixed 1400 bytes: type, sequence, topic number, text; topics are created first, ACKs are echoes",
        ports = { publisher = { 50002 }, broker = { 50003 }, subscriber = { 50004 } },
        topics = { kind = "number", case_sensitive = true, number = "topic_number", named_by = "CREATION" },
        broker = { forward = { PUBLICATION = { same_bytes = true } }, order = { publish = { "ack", "forward", "status" }, subscribe = { "ack", "status" }, unsubscribe = { "ack", "status" }, create = { "ack", "status" } }, copies = "per-subscription", retained = "none", forward_from = "broker" },
        client = { acks = { "PUBLICATION", "MESSAGE" }, may_change = {} },
        forms = {
            {
                name = "documented", nul_padding = true,
                layouts = {
                    {
                        message = "ACK", meaning = "ack", last_guard = 1, acks = { "any" }, acks_by = "echo",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 0 } },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "NAK", meaning = "other", last_guard = 1,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 1 } },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "RTS", meaning = "other", last_guard = 1,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 2 } },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "CTS", meaning = "other", last_guard = 1,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 3 } },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "CREATION", meaning = "create", last_guard = 1, topic = 4, sender = "publisher",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 4 } },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "PUBLICATION", meaning = "publish", last_guard = 1, topic = 3, payload = 4,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 5 } },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUBSCRIPTION", meaning = "subscribe", last_guard = 1, filter = 4, sender = "subscriber",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 6 } },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "UNSUBSCRIPTION", meaning = "unsubscribe", last_guard = 1, filter = 4, sender = "subscriber",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 7 } },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "MESSAGE", meaning = "status", last_guard = 1, payload = 4, sender = "broker",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 8 } },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                },
            },
        },
    },
}
-- luacheck: pop
end)(shared)
-- <<< end of the generated part

-- ==================== 30_dialects.lua ==============================================================================
;(function(...)
-- Makes the generated tables ready: readers as closures, sets instead of lists, layouts by first byte.
local ts = ...
local walk, charsets = ts.walk, ts.charsets

local NUMERIC = { uint = true, int = true, bits = true, digits = true }

local function set_of(list)
    if not list then
        return nil
    end
    local set = {}
    for _, value in ipairs(list) do
        set[value] = true
    end
    return set
end

local function prepare_step(step, index, layout)
    step.is_number = NUMERIC[step.kind] or false
    step.is_last = index == #layout.steps
    step.guards, step.guard, step.allowed = step.guard, set_of(step.guard), set_of(step.allowed)
    step.first_bad = step.charset and charsets.first_bad[step.charset]
    step.read = walk.reader(step)
    local looked_at = step.guard or step.allowed or step.first_bad or step.counts or index == layout.last_guard
    step.plain = not looked_at
end

-- Where every layout is decided by its first byte: the ones worth trying for each value of it.
local function by_first_byte(form)
    for _, layout in ipairs(form.layouts) do
        local first = layout.steps[1]
        if first.kind ~= "uint" or first.size ~= 1 or not first.guard then
            return nil
        end
    end
    local found = {}
    for value = 0, 255 do
        local layouts = {}
        for _, layout in ipairs(form.layouts) do
            if layout.steps[1].guard[value] then
                layouts[#layouts + 1] = layout
            end
        end
        found[value] = layouts[1] and layouts or { form.layouts[1] }
    end
    return found
end

ts.by_name = {}
for place, dialect in ipairs(ts.dialects) do
    dialect.place = place
    ts.by_name[dialect.name] = dialect
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            for index, step in ipairs(layout.steps) do
                prepare_step(step, index, layout)
            end
        end
        form.by_first_byte = by_first_byte(form)
    end
end
end)(shared)

return shared
