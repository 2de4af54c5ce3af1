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
numbers.POWER = POWER

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

-- ==================== 11_remember.lua ==============================================================================
;(function(...)
-- A function of a text that remembers its answers: topics are few, and come again and again.
local ts = ...

local MOST, LONGEST = 1024, 256

function ts.remember(answer)
    local known, count = {}, 0
    return function(text)
        local found = known[text]
        if found == nil then
            found = answer(text) or false
            if #text <= LONGEST then
                if count >= MOST then
                    known, count = {}, 0
                end
                known[text], count = found, count + 1
            end
        end
        return found
    end
end
end)(shared)

-- ==================== 12_charsets.lua ==============================================================================
;(function(...)
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
local byte, find, sub, rep, floor = string.byte, string.find, string.sub, string.rep, math.floor

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

local function end_of_rest(w, data, at, limit)
    if may_be_padded(w) then
        if byte(data, limit) ~= 0 then -- the common case: nothing to cut off
            return limit
        end
        local stop = content_end(w)
        return stop > at and stop or at
    end
    return limit
end

-- -- reading one step ------------------------------------------------------------------------------------------------
--
-- A reader gets (data, at, limit, w) and gives the value, where the next step begins, and where they differ from the
-- step's own the first and last offset of the value; or nil, a fatal error code and its offset.

local function same(raw)
    return raw
end

local function fixed(step, decode)
    local size = step.size
    return function(data, at, limit)
        if size > limit - at then
            return nil, "incomplete", at
        end
        return decode(sub(data, at + 1, at + size)), at + size
    end
end

local function read_byte(data, at, limit)
    if at >= limit then
        return nil, "incomplete", at
    end
    return byte(data, at + 1), at + 1
end

local function reader_of_uint(step)
    if step.size == 1 then
        return read_byte
    end
    return fixed(step, function(raw)
        return numbers.unsigned(raw, step.little)
    end)
end

local function reader_of_int(step)
    return fixed(step, function(raw)
        return numbers.signed(raw, step.little)
    end)
end

local function reader_of_bits(step)
    local size, shift, bits, closes = step.size, step.shift, step.bits, step.closes_group
    if size == 1 then
        local unit, values = numbers.POWER[shift], numbers.POWER[bits]
        return function(data, at, limit)
            if at >= limit then
                return nil, "incomplete", at
            end
            return floor(byte(data, at + 1) / unit) % values, closes and at + 1 or at, at, at + 1
        end
    end
    return function(data, at, limit)
        if size > limit - at then
            return nil, "incomplete", at
        end
        local value = numbers.bits(sub(data, at + 1, at + size), shift, bits)
        return value, closes and at + size or at, at, at + size
    end
end

local function reader_of_digits(step)
    local read, zero = fixed(step, same), step.binary_digits and 0 or 48
    return function(data, at, limit)
        local raw, next_at, offset = read(data, at, limit)
        if not raw then
            return nil, next_at, offset
        end
        local value = numbers.digits(raw, zero)
        if not value then
            return nil, "bad-value", at
        end
        return value, next_at
    end
end

local function reader_of_magic(step)
    local read, literal = fixed(step, same), step.literal
    return function(data, at, limit)
        local raw, next_at, offset = read(data, at, limit)
        if raw and raw ~= literal then
            return nil, "bad-magic", at
        end
        return raw, next_at, offset
    end
end

local function reader_of_fixed_text(step)
    return fixed(step, same)
end

local function reader_until(step)
    local literal, or_end, keeps_delimiter = step.literal, step.or_end, step.or_end and step.closes_run
    return function(data, at, limit, w)
        local first, last = find(data, literal, at + 1, true)
        if first and last <= limit then
            if keeps_delimiter then
                return sub(data, at + 1, first - 1), first - 1
            end
            w.after_delimiter = true
            return sub(data, at + 1, first - 1), last, at, first - 1
        end
        if not or_end then
            return nil, "no-delimiter", at
        end
        w.open_end = at
        local stop = end_of_rest(w, data, at, limit)
        return sub(data, at + 1, stop), stop
    end
end

local function read_rest(data, at, limit, w)
    local stop = end_of_rest(w, data, at, limit)
    return sub(data, at + 1, stop), stop
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
    return function(data, at, limit)
        if size > limit - at then
            return nil, "incomplete", at
        end
        local length = length_of(sub(data, at + 1, at + size))
        if not length or length < 0 then
            return nil, "bad-length", at
        end
        local first = at + size
        if length > limit - first then
            return nil, "incomplete", at
        end
        return sub(data, first + 1, first + length), first + length, first
    end
end

-- 7 bits a byte, the lowest first; at most 4 bytes, and none that a shorter number could do without.
local function read_varint(data, at, limit)
    local value, unit = 0, 1
    for place = at + 1, at + 4 do
        if place > limit then
            return nil, "incomplete", at
        end
        local part = byte(data, place)
        value = value + part % 128 * unit
        if part < 128 then
            if part == 0 and unit > 1 then
                break
            end
            return value, place
        end
        unit = unit * 128
    end
    return nil, "bad-value", at
end

local function reader_of_varint()
    return read_varint
end

local READERS = {
    uint = reader_of_uint,
    int = reader_of_int,
    bits = reader_of_bits,
    digits = reader_of_digits,
    varint = reader_of_varint,
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
    w.run_last, w.run_end, w.open_end = nil, nil, nil
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

-- A length that was read before opens its run with this step.
local function open_before(w, step, index)
    local length_step = step.span_length
    if length_step < index and not w.run_last then
        local last_step = w.layout.steps[length_step].span_last
        open_run(w, w.at, tonumber(w.values[length_step]), last_step, w.starts[length_step])
    end
end

-- -- the walk -------------------------------------------------------------------------------------------------------

local function is_absent(w, step)
    if w.at < (w.run_end or w.stop) or w.after_delimiter then
        return false
    elseif step.kind == "bits" then
        return step.opens_group
    end
    return step.extent ~= "rest"
end

local function stop_here(w, code, offset)
    note(w, code, offset)
    if not w.selected then -- why it was not selected counts for more than what was noted on the way
        w.error, w.error_offset = code, offset
    end
end

local function finish(w)
    w.run_last, w.run_end = nil, nil -- an absent field may have ended the layout inside a run
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
    w.stop, w.count, w.padding = #data, 0, 0
    w.content, w.run_last, w.run_end, w.end_told, w.error, w.error_offset = nil, nil, nil, false, nil, nil
    w.after_delimiter, w.open_end = false, nil
    w.selected = layout.last_guard == 0
    local steps, values, starts = layout.steps, w.values, w.starts
    local stops, firsts, lasts = w.stops, w.firsts, w.lasts
    local at, limit, may_be_short = 0, #data, layout.may_be_short
    for index = 1, #steps do
        local step = steps[index]
        if step.may_open then
            w.at = at
            open_before(w, step, index)
            limit = w.run_end or w.stop
        end
        if may_be_short then
            if w.open_end then -- nothing can come after it
                if step.optional then
                    break
                end
                return stop_here(w, "no-delimiter", w.open_end)
            end
            w.at = at
            if step.optional and is_absent(w, step) then
                break
            end
            w.after_delimiter = false
        end
        local value, next_at, first, last = step.read(data, at, limit, w)
        if value == nil then
            return stop_here(w, next_at, first)
        end
        values[index], starts[index], firsts[index] = value, at, first or at
        stops[index] = step.kind == "bits" and last or next_at
        lasts[index] = last or next_at
        w.count = index
        if not step.plain then
            if step.guard and not step.guard[value] then
                return stop_here(w, "unknown-type", at)
            end
            if index == layout.last_guard then
                w.selected = true
            end
            w.at = next_at
            judge(w, step, value, first or at)
            if step.counts then
                apply_length(w, index, step, value, at)
                limit = w.run_end or w.stop
            end
        end
        at = next_at
        if w.run_last == index then
            w.at = at
            close_run(w)
            at, limit = w.at, w.stop
        end
    end
    w.at = at
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

-- The same, but at first by the layouts that have this type, where one byte tells it.
local function read_form(form, data, current, spare)
    local typed = form.by_type and form.by_type[byte(data, form.type_at)]
    if typed then
        local w, free = best_of_form(form, typed, data, current, spare)
        if w.selected or not form.untyped[2] then
            return w, free
        end
        current, spare = w, free
    end
    return best_of_form(form, form.untyped or form.layouts, data, current, spare)
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
        local w, free = read_form(form, data, current, spare)
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
ts.limits = { copy_window = 0.001, copy_groups = 16384, default_resend = 1.0 }
ts.dialects = {
    {
        name = "colon",
        title = "Type byte, retain byte, topic and payload split by a colon",
        ports = { broker = { 50000 }, client = { 50000 } },
        topics = { kind = "text", separator = "/", wildcards = { ["*"] = "any-run" }, case_sensitive = true },
        broker = { forward = { PUBLISH = { same_bytes = true } }, order = { publish = { "forward", "ack" }, subscribe = { "retained", "ack" }, unsubscribe = { "ack" } }, copies = "per-filter", retained = "matching", forward_from = "broker" },
        client = { acks = {}, may_change = { "retain" }, resend_after = 5.0 },
        forms = {
            {
                name = "documented", nul_padding = true,
                layouts = {
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 1, topic = 3, payload = 4, retain = 2,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 1 }, evidence = 8.0 },
                            { name = "retain", kind = "uint", size = 1, allowed = { 0, 1 }, names = { [0] = "no", [1] = "yes" }, evidence = 7.0 },
                            { name = "topic", kind = "text", extent = "until", literal = ":", charset = "utf8", evidence = 4.0 },
                            { name = "payload", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBACK", meaning = "ack", last_guard = 1, sender = "broker", acks = { "PUBLISH" }, acks_by = "order",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 2 }, evidence = 8.0 },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 1, filter = 3, retain = 2, sender = "client",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 3 }, evidence = 8.0 },
                            { name = "retain", kind = "uint", size = 1, allowed = { 0, 1 }, names = { [0] = "no", [1] = "yes" }, evidence = 7.0 },
                            { name = "filter", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUBACK", meaning = "ack", last_guard = 1, sender = "broker", acks = { "SUBSCRIBE" }, acks_by = "order",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 4 }, evidence = 8.0 },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 1, filter = 3, retain = 2, sender = "client",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 5 }, evidence = 8.0 },
                            { name = "retain", kind = "uint", size = 1, allowed = { 0, 1 }, names = { [0] = "no", [1] = "yes" }, evidence = 7.0 },
                            { name = "filter", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "UNSUBACK", meaning = "ack", last_guard = 1, sender = "broker", acks = { "UNSUBSCRIBE" }, acks_by = "order",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 6 }, evidence = 8.0 },
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
        broker = { forward = { PUBLISH = { becomes = "PUBLISH", fresh = { "topic_id", "message_id" } } }, order = { subscribe = { "ack", "retained" } }, copies = "per-subscriber", retained = "matching", forward_from = "broker", sessions = "mqtt-sn" },
        client = { acks = { "PUBLISH", "REGISTER" }, may_change = { "dup" }, resend_after = 10.0 },
        forms = {
            {
                name = "short", nul_padding = false,
                layouts = {
                    {
                        message = "ADVERTISE", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 0 }, evidence = 8.0 },
                            { name = "gateway_id", kind = "uint", size = 1 },
                            { name = "duration", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SEARCHGW", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 1 }, evidence = 8.0 },
                            { name = "radius", kind = "uint", size = 1 },
                        },
                    },
                    {
                        message = "GWINFO", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 2 }, evidence = 8.0 },
                            { name = "gateway_id", kind = "uint", size = 1 },
                            { name = "gateway", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "CONNECT", meaning = "other", last_guard = 2, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 4 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "protocol_id", kind = "uint", size = 1, allowed = { 1 }, names = { [1] = "mqttsn_1_2" }, evidence = 8.0 },
                            { name = "duration", kind = "uint", size = 2 },
                            { name = "client_id", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "CONNACK", meaning = "ack", last_guard = 2, code = 3, acks = { "CONNECT" }, acks_by = "order",
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 5 }, evidence = 8.0 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "WILLTOPICREQ", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 6 }, evidence = 8.0 },
                        },
                    },
                    {
                        message = "WILLTOPIC", meaning = "other", last_guard = 2, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 7 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true, optional = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, optional = true, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4, optional = true },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3, optional = true },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2, optional = true },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, optional = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "will_topic", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "WILLMSGREQ", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 8 }, evidence = 8.0 },
                        },
                    },
                    {
                        message = "WILLMSG", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 9 }, evidence = 8.0 },
                            { name = "will_message", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "REGISTER", meaning = "create", last_guard = 2, topic = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 10 }, evidence = 8.0 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "REGACK", meaning = "ack", last_guard = 2, code = 5, acks = { "REGISTER" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 11 }, evidence = 8.0 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 8, topic = 9, payload = 11, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 12 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 2 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 2.0 },
                            { name = "short_topic", kind = "text", size = 2, charset = "utf8" },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "data", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 2, topic = 9, payload = 11, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 12 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "data", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBACK", meaning = "ack", last_guard = 2, code = 5, acks = { "PUBLISH" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 13 }, evidence = 8.0 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "PUBCOMP", meaning = "ack", last_guard = 2, acks = { "PUBREL" }, acks_by = "message_id", acks_by_step = 3,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 14 }, evidence = 8.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PUBREC", meaning = "ack", last_guard = 2, acks = { "PUBLISH" }, acks_by = "message_id", acks_by_step = 3,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 15 }, evidence = 8.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PUBREL", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 16 }, evidence = 8.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 8, filter = 10, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 18 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 1 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 2.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 2, filter = 10, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 18 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUBACK", meaning = "ack", last_guard = 2, retain = 5, code = 11, acks = { "SUBSCRIBE" }, acks_by = "message_id", acks_by_step = 10,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 19 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 8, filter = 10, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 20 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 1 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 2.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 2, filter = 10, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 20 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "UNSUBACK", meaning = "ack", last_guard = 2, acks = { "UNSUBSCRIBE" }, acks_by = "message_id", acks_by_step = 3,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 21 }, evidence = 8.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PINGREQ", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 22 }, evidence = 8.0 },
                            { name = "client_id", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "PINGRESP", meaning = "ack", last_guard = 2, acks = { "PINGREQ" }, acks_by = "order",
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 23 }, evidence = 8.0 },
                        },
                    },
                    {
                        message = "DISCONNECT", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 24 }, evidence = 8.0 },
                            { name = "duration", kind = "uint", size = 2, optional = true },
                        },
                    },
                    {
                        message = "WILLTOPICUPD", meaning = "other", last_guard = 2, retain = 5,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 26 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true, optional = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, optional = true, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4, optional = true },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3, optional = true },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2, optional = true },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, optional = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "will_topic", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "WILLTOPICRESP", meaning = "ack", last_guard = 2, code = 3, acks = { "WILLTOPICUPD" }, acks_by = "order",
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 27 }, evidence = 8.0 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "WILLMSGUPD", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 28 }, evidence = 8.0 },
                            { name = "will_message", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "WILLMSGRESP", meaning = "ack", last_guard = 2, code = 3, acks = { "WILLMSGUPD" }, acks_by = "order",
                        steps = {
                            { name = "length", kind = "uint", size = 1, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 29 }, evidence = 8.0 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "FORWARDED", meaning = "other", last_guard = 2,
                        steps = {
                            { name = "header_length", kind = "uint", size = 1, counts = "span", span_first = 1, span_last = 4, span_length = 1, evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 254 }, evidence = 8.0 },
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
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 0 }, evidence = 8.0 },
                            { name = "gateway_id", kind = "uint", size = 1 },
                            { name = "duration", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SEARCHGW", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 1 }, evidence = 8.0 },
                            { name = "radius", kind = "uint", size = 1 },
                        },
                    },
                    {
                        message = "GWINFO", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 2 }, evidence = 8.0 },
                            { name = "gateway_id", kind = "uint", size = 1 },
                            { name = "gateway", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "CONNECT", meaning = "other", last_guard = 3, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 4 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "protocol_id", kind = "uint", size = 1, allowed = { 1 }, names = { [1] = "mqttsn_1_2" }, evidence = 8.0 },
                            { name = "duration", kind = "uint", size = 2 },
                            { name = "client_id", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "CONNACK", meaning = "ack", last_guard = 3, code = 4, acks = { "CONNECT" }, acks_by = "order",
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 5 }, evidence = 8.0 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "WILLTOPICREQ", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 6 }, evidence = 8.0 },
                        },
                    },
                    {
                        message = "WILLTOPIC", meaning = "other", last_guard = 3, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 7 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true, optional = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, optional = true, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4, optional = true },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3, optional = true },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2, optional = true },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, optional = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "will_topic", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "WILLMSGREQ", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 8 }, evidence = 8.0 },
                        },
                    },
                    {
                        message = "WILLMSG", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 9 }, evidence = 8.0 },
                            { name = "will_message", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "REGISTER", meaning = "create", last_guard = 3, topic = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 10 }, evidence = 8.0 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "REGACK", meaning = "ack", last_guard = 3, code = 6, acks = { "REGISTER" }, acks_by = "message_id", acks_by_step = 5,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 11 }, evidence = 8.0 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 9, topic = 10, payload = 12, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 12 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 2 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 2.0 },
                            { name = "short_topic", kind = "text", size = 2, charset = "utf8" },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "data", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 3, topic = 10, payload = 12, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 12 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "data", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "PUBACK", meaning = "ack", last_guard = 3, code = 6, acks = { "PUBLISH" }, acks_by = "message_id", acks_by_step = 5,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 13 }, evidence = 8.0 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "PUBCOMP", meaning = "ack", last_guard = 3, acks = { "PUBREL" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 14 }, evidence = 8.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PUBREC", meaning = "ack", last_guard = 3, acks = { "PUBLISH" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 15 }, evidence = 8.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PUBREL", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 16 }, evidence = 8.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 9, filter = 11, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 18 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 1 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 2.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "SUBSCRIBE", meaning = "subscribe", last_guard = 3, filter = 11, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 18 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUBACK", meaning = "ack", last_guard = 3, retain = 6, code = 12, acks = { "SUBSCRIBE" }, acks_by = "message_id", acks_by_step = 11,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 19 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "topic_id", kind = "uint", size = 2 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 9, filter = 11, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 20 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, guard = { 1 }, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 2.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "UNSUBSCRIBE", meaning = "unsubscribe", last_guard = 3, filter = 11, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 20 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4 },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3 },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2 },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "message_id", kind = "uint", size = 2 },
                            { name = "topic_name", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "UNSUBACK", meaning = "ack", last_guard = 3, acks = { "UNSUBSCRIBE" }, acks_by = "message_id", acks_by_step = 4,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 21 }, evidence = 8.0 },
                            { name = "message_id", kind = "uint", size = 2 },
                        },
                    },
                    {
                        message = "PINGREQ", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 22 }, evidence = 8.0 },
                            { name = "client_id", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "PINGRESP", meaning = "ack", last_guard = 3, acks = { "PINGREQ" }, acks_by = "order",
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 23 }, evidence = 8.0 },
                        },
                    },
                    {
                        message = "DISCONNECT", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 24 }, evidence = 8.0 },
                            { name = "duration", kind = "uint", size = 2, optional = true },
                        },
                    },
                    {
                        message = "WILLTOPICUPD", meaning = "other", last_guard = 3, retain = 6,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 26 }, evidence = 8.0 },
                            { name = "dup", kind = "bits", size = 1, bits = 1, shift = 7, opens_group = true, optional = true },
                            { name = "qos", kind = "bits", size = 1, bits = 2, shift = 5, optional = true, allowed = { 0, 1, 2, 3 }, names = { [0] = "0", [1] = "1", [2] = "2", [3] = "-1" } },
                            { name = "retain", kind = "bits", size = 1, bits = 1, shift = 4, optional = true },
                            { name = "will", kind = "bits", size = 1, bits = 1, shift = 3, optional = true },
                            { name = "clean_session", kind = "bits", size = 1, bits = 1, shift = 2, optional = true },
                            { name = "topic_id_type", kind = "bits", size = 1, bits = 2, shift = 0, closes_group = true, optional = true, allowed = { 0, 1, 2 }, names = { [0] = "normal", [1] = "predefined", [2] = "short" }, evidence = 0.42 },
                            { name = "will_topic", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "WILLTOPICRESP", meaning = "ack", last_guard = 3, code = 4, acks = { "WILLTOPICUPD" }, acks_by = "order",
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 27 }, evidence = 8.0 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
                        },
                    },
                    {
                        message = "WILLMSGUPD", meaning = "other", last_guard = 3,
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 28 }, evidence = 8.0 },
                            { name = "will_message", kind = "bytes", extent = "rest" },
                        },
                    },
                    {
                        message = "WILLMSGRESP", meaning = "ack", last_guard = 3, code = 4, acks = { "WILLMSGUPD" }, acks_by = "order",
                        steps = {
                            { name = "mark", kind = "magic", size = 1, literal = "\001", evidence = 8.0 },
                            { name = "length", kind = "uint", size = 2, counts = "datagram", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 29 }, evidence = 8.0 },
                            { name = "return_code", kind = "uint", size = 1, accepted = { 0 }, allowed = { 0, 1, 2, 3 }, names = { [0] = "accepted", [1] = "congestion", [2] = "invalid_topic_id", [3] = "not_supported" }, evidence = 6.0 },
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
                            { name = "port", kind = "digits", size = 5, evidence = 23.39 },
                            { name = "role", kind = "digits", size = 1, guard = { 0 }, allowed = { 0, 1 }, names = { [0] = "subscriber", [1] = "publisher" }, evidence = 8.0 },
                            { name = "topic", kind = "digits", size = 2, allowed = { 1, 2, 3 }, names = { [1] = "temperature", [2] = "wind speed", [3] = "humidity" }, evidence = 14.42 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 2, topic = 3, payload = 4,
                        steps = {
                            { name = "port", kind = "digits", size = 5, evidence = 23.39 },
                            { name = "role", kind = "digits", size = 1, guard = { 1 }, allowed = { 0, 1 }, names = { [0] = "subscriber", [1] = "publisher" }, evidence = 8.0 },
                            { name = "topic", kind = "digits", size = 2, allowed = { 1, 2, 3 }, names = { [1] = "temperature", [2] = "wind speed", [3] = "humidity" }, evidence = 14.42 },
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
                            { name = "port", kind = "digits", size = 5, binary_digits = true, evidence = 23.39 },
                            { name = "role", kind = "digits", size = 1, binary_digits = true, guard = { 0 }, allowed = { 0, 1 }, names = { [0] = "subscriber", [1] = "publisher" }, evidence = 8.0 },
                            { name = "topic", kind = "digits", size = 2, binary_digits = true, allowed = { 1, 2, 3 }, names = { [1] = "temperature", [2] = "wind speed", [3] = "humidity" }, evidence = 14.42 },
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w", evidence = 40.0 },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "text", kind = "text", extent = "prefix", size = 2, prefix = "unsigned", charset = "java", evidence = 6.0 },
                        },
                    },
                    {
                        message = "PUBLISH", meaning = "publish", last_guard = 4, topic = 3, payload = 6,
                        steps = {
                            { name = "port", kind = "digits", size = 5, binary_digits = true, evidence = 23.39 },
                            { name = "role", kind = "digits", size = 1, binary_digits = true, guard = { 1 }, allowed = { 0, 1 }, names = { [0] = "subscriber", [1] = "publisher" }, evidence = 8.0 },
                            { name = "topic", kind = "digits", size = 2, binary_digits = true, allowed = { 1, 2, 3 }, names = { [1] = "temperature", [2] = "wind speed", [3] = "humidity" }, evidence = 14.42 },
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w", evidence = 40.0 },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "text", kind = "text", extent = "prefix", size = 2, prefix = "unsigned", charset = "java", evidence = 6.0 },
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
                            { name = "type", kind = "uint", size = 1, guard = { 1 }, evidence = 8.0 },
                            { name = "length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "filter", kind = "text", extent = "until", literal = " ", or_end = true, charset = "utf8" },
                            { name = "extra", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "BROKER", meaning = "deliver", last_guard = 1, topic = 3, payload = 4, sender = "broker",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 2 }, evidence = 8.0 },
                            { name = "length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "topic", kind = "text", extent = "until", literal = " ", charset = "utf8", evidence = 4.0 },
                            { name = "value", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SENSOR_PUBLISH", meaning = "publish", last_guard = 1, topic = 3, payload = 4, sender = "sensor",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 3 }, evidence = 8.0 },
                            { name = "length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "topic", kind = "text", extent = "until", literal = " ", charset = "utf8", evidence = 4.0 },
                            { name = "value", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "ACTUATOR_SUBSCRIBE", meaning = "subscribe", last_guard = 1, filter = 3, sender = "actuator",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 4 }, evidence = 8.0 },
                            { name = "length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "filter", kind = "text", extent = "until", literal = " ", or_end = true, charset = "utf8" },
                            { name = "extra", kind = "text", extent = "rest", charset = "utf8", optional = true },
                        },
                    },
                    {
                        message = "ACTUATOR_PUBLISH", meaning = "publish", last_guard = 1, topic = 3, payload = 4, sender = "actuator",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 5 }, evidence = 8.0 },
                            { name = "length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "topic", kind = "text", extent = "until", literal = " ", charset = "utf8", evidence = 4.0 },
                            { name = "value", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "DASHBOARD_PUBLISH", meaning = "publish", last_guard = 1, topic = 3, payload = 4, sender = "dashboard",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 6 }, evidence = 8.0 },
                            { name = "length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "topic", kind = "text", extent = "until", literal = " ", charset = "utf8", evidence = 4.0 },
                            { name = "value", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "ACK", meaning = "ack", last_guard = 1, code = 2, acks = { "any" }, acks_by = "order",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 7 }, evidence = 8.0 },
                            { name = "code", kind = "uint", size = 1, accepted = { 10 }, allowed = { 10 }, names = { [10] = "all_ok" }, evidence = 8.0 },
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
                            { name = "type", kind = "uint", size = 1, guard = { 1 }, evidence = 8.0 },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" }, evidence = 6.42 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUB", meaning = "subscribe", last_guard = 1, filter = 2,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 2 }, evidence = 8.0 },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" }, evidence = 6.42 },
                        },
                    },
                    {
                        message = "MESSAGE", meaning = "publish", last_guard = 1, topic = 2, payload = 3,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 3 }, evidence = 8.0 },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" }, evidence = 6.42 },
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
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w", evidence = 40.0 },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 1 }, evidence = 8.0 },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" }, evidence = 6.42 },
                            { name = "text", kind = "text", extent = "prefix", size = 2, prefix = "unsigned", charset = "java", evidence = 6.0 },
                        },
                    },
                    {
                        message = "SUB", meaning = "subscribe", last_guard = 3, filter = 4,
                        steps = {
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w", evidence = 40.0 },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 2 }, evidence = 8.0 },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" }, evidence = 6.42 },
                        },
                    },
                    {
                        message = "MESSAGE", meaning = "publish", last_guard = 3, topic = 4, payload = 5,
                        steps = {
                            { name = "block", kind = "magic", size = 5, literal = "\172\237\000\005w", evidence = 40.0 },
                            { name = "block_length", kind = "uint", size = 1, counts = "rest", evidence = 8.0 },
                            { name = "type", kind = "uint", size = 1, guard = { 3 }, evidence = 8.0 },
                            { name = "topic", kind = "uint", size = 1, allowed = { 0, 10, 20 }, names = { [0] = "none", [10] = "temperature", [20] = "humidity" }, evidence = 6.42 },
                            { name = "text", kind = "text", extent = "prefix", size = 2, prefix = "unsigned", charset = "java", evidence = 6.0 },
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
                            { name = "type", kind = "uint", size = 1, guard = { 0 }, evidence = 8.0 },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "NAK", meaning = "other", last_guard = 1,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 1 }, evidence = 8.0 },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "RTS", meaning = "other", last_guard = 1,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 2 }, evidence = 8.0 },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "CTS", meaning = "other", last_guard = 1,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 3 }, evidence = 8.0 },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "CREATION", meaning = "create", last_guard = 1, topic = 4, sender = "publisher",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 4 }, evidence = 8.0 },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "PUBLICATION", meaning = "publish", last_guard = 1, topic = 3, payload = 4,
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 5 }, evidence = 8.0 },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "SUBSCRIPTION", meaning = "subscribe", last_guard = 1, filter = 4, sender = "subscriber",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 6 }, evidence = 8.0 },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "UNSUBSCRIPTION", meaning = "unsubscribe", last_guard = 1, filter = 4, sender = "subscriber",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 7 }, evidence = 8.0 },
                            { name = "sequence", kind = "uint", size = 1 },
                            { name = "topic_number", kind = "uint", size = 4 },
                            { name = "text", kind = "text", extent = "rest", charset = "utf8" },
                        },
                    },
                    {
                        message = "MESSAGE", meaning = "status", last_guard = 1, payload = 4, sender = "broker",
                        steps = {
                            { name = "type", kind = "uint", size = 1, guard = { 8 }, evidence = 8.0 },
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
-- Makes the generated tables ready: readers as closures, sets instead of lists, layouts by their type.
local ts = ...
local walk, charsets, remember = ts.walk, ts.charsets, ts.remember

local TEXTS = { text = true, bytes = true, magic = true }

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
    step.is_number = not TEXTS[step.kind]
    step.is_last = index == #layout.steps
    step.guards, step.guard, step.allowed = step.guard, set_of(step.guard), set_of(step.allowed)
    step.first_bad = step.charset and charsets.first_bad[step.charset]
    if step.first_bad and (index == layout.topic or index == layout.filter) then
        step.first_bad = remember(step.first_bad)
    end
    step.may_open = step.span_length ~= nil
    step.read = walk.reader(step)
    local looked_at = step.guard or step.allowed or step.first_bad or step.counts or index == layout.last_guard
    step.plain = not looked_at
end

local FIXED = { uint = true, int = true, digits = true, magic = true }

local function is_fixed(step)
    return step and FIXED[step.kind] and not step.extent and not step.optional
end

-- Where one byte tells the layouts apart, behind steps of fixed size: the number of its step, its place, and whether
-- all layouts that have another value there fail in the same way.
local function type_step(form)
    local at, fail_alike = 1, true
    for index, step in ipairs(form.layouts[1].steps) do
        for _, layout in ipairs(form.layouts) do
            local other = layout.steps[index]
            if not is_fixed(other) or other.size ~= step.size or not other.guard ~= not step.guard then
                return nil
            end
            fail_alike = fail_alike and other.kind == step.kind and other.literal == step.literal
            fail_alike = fail_alike and other.counts == step.counts and not other.span_length
        end
        if step.guard then
            return step.kind == "uint" and step.size == 1 and index or nil, at, fail_alike
        end
        at = at + step.size
    end
    return nil
end

-- The layouts for each value of that byte; nil where none has it.
local function by_type(form, index)
    local found = {}
    for _, layout in ipairs(form.layouts) do
        for _, value in ipairs(layout.steps[index].guards) do
            found[value] = found[value] or {}
            table.insert(found[value], layout)
        end
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
                layout.may_be_short = layout.may_be_short or step.optional or step.or_end
            end
        end
        local index, at, fail_alike = type_step(form)
        if index then
            form.by_type, form.type_at = by_type(form, index), at
            form.untyped = fail_alike and { form.layouts[1] } or form.layouts
        end
    end
end
end)(shared)

-- ==================== 32_topics.lua ================================================================================
;(function(...)
-- Does a filter match a topic? By the dialect's wildcards, without regular expressions, in bounded time.
--
-- any-run      any characters, across levels, at any place
-- one-level    exactly one level
-- rest-levels  this and all deeper levels, and none; the last level of the filter
-- any-levels   any number of levels, and none
-- all          as the whole filter: every topic
local ts = ...
local find, sub, gsub, lower = string.find, string.sub, string.gsub, string.lower

local topics = {}
ts.topics = topics

local function split(text, separator)
    local parts, from = {}, 1
    if not separator or separator == "" then
        return { text }
    end
    while true do
        local first, last = find(text, separator, from, true)
        if not first then
            parts[#parts + 1] = sub(text, from)
            return parts
        end
        parts[#parts + 1] = sub(text, from, first - 1)
        from = last + 1
    end
end

-- `pieces` are the literal parts between any-run marks. Taking each at its first place is right: no backtracking.
local function matches_pieces(pieces, text)
    local count = #pieces
    local head = pieces[1]
    if count == 1 then
        return text == head
    end
    if sub(text, 1, #head) ~= head then
        return false
    end
    local at = #head + 1
    for index = 2, count - 1 do
        local _, last = find(text, pieces[index], at, true)
        if not last then
            return false
        end
        at = last + 1
    end
    local tail = pieces[count]
    return #text - #tail + 1 >= at and sub(text, #text - #tail + 1) == tail
end

-- The levels of a filter against those of a topic. Only the last any-levels seen has to be tried again.
local function matches_levels(wanted, levels, spans)
    local f, t, retry_f, retry_t = 1, 1, nil, nil
    while t <= #levels do
        local level = wanted[f]
        local span = level and spans[level]
        if span == "any-levels" then
            retry_f, retry_t, f = f, t, f + 1
        elseif span == "rest-levels" then
            return true
        elseif level and (span == "one-level" or level == levels[t]) then
            f, t = f + 1, t + 1
        elseif retry_f then
            f, retry_t = retry_f + 1, retry_t + 1
            t = retry_t
        else
            return false
        end
    end
    while wanted[f] and (spans[wanted[f]] == "any-levels" or spans[wanted[f]] == "rest-levels") do
        f = f + 1
    end
    return wanted[f] == nil
end

local function mark_of(spans, wanted)
    for mark, span in pairs(spans) do
        if span == wanted then
            return mark
        end
    end
    return nil
end

-- A function that says whether a topic matches this filter.
function topics.matcher(rules, filter)
    local spans, fold = rules.wildcards or {}, not rules.case_sensitive
    if spans[filter] == "all" then
        return function()
            return true
        end
    end
    filter = fold and lower(filter) or filter
    local any_run = mark_of(spans, "any-run")
    if any_run then
        local pieces = split(filter, any_run)
        return function(topic)
            return matches_pieces(pieces, fold and lower(topic) or topic)
        end
    end
    local wanted = split(filter, rules.separator)
    return function(topic)
        return matches_levels(wanted, split(fold and lower(topic) or topic, rules.separator), spans)
    end
end

-- Does a published topic hold a wildcard? A mark for levels counts only as a whole level.
function topics.has_wildcard(rules, topic)
    for mark, span in pairs(rules.wildcards or {}) do
        if span == "any-run" then
            if find(topic, mark, 1, true) then
                return true
            end
        elseif span == "all" then
            if topic == mark then
                return true
            end
        else
            for _, level in ipairs(split(topic, rules.separator)) do
                if level == mark then
                    return true
                end
            end
        end
    end
    return false
end

-- The topic under which a publish is passed on.
function topics.without(topic, word)
    local first, last = find(topic, word, 1, true)
    if not first then
        return topic
    end
    return sub(topic, 1, first - 1) .. sub(topic, last + 1)
end

-- A pattern with `*` of a preference, as the user types it.
function topics.pattern(text)
    local trimmed = gsub(text, "^%s*(.-)%s*$", "%1")
    return topics.matcher({ wildcards = { ["*"] = "any-run" }, case_sensitive = true }, trimmed)
end
end)(shared)

-- ==================== 34_evidence.lua ==============================================================================
;(function(...)
-- How surely is a datagram of a dialect? The evidence in bits: random bytes would decode so one time in 2^bits.
--
-- A one-byte ACK has some 5 bits, `home/room:20` behind a type and a retain byte more than 30. Used to claim traffic on
-- unknown ports, and to choose between dialects that share a port. What each step proves by itself, whatever its value,
-- stands in the tables: `step_bits` of pcap_tools/codec/detect.py.
local ts = ...
local find, floor, log, min = string.find, math.floor, math.log, math.min

local evidence = { ENOUGH = 24 }
ts.evidence = evidence

local PRINTABLE_BITS = 1.4 -- log2(256 / 96) a character, for at most this many of them:
local MOST_CHARACTERS = 32

local function log2(value)
    return log(value) / log(2)
end

-- The bits for a decoded datagram; 0 if it has an error, or a text that nobody could read. Readable bytes are text.
function evidence.of(w)
    if w.error or not w.selected then
        return 0
    end
    local bits = -log2(#w.form.layouts)
    for index = 1, w.count do
        local step = w.layout.steps[index]
        bits = bits + (step.evidence or 0)
        if (step.kind == "text" or step.kind == "bytes") and not step.guards then
            local value = w.values[index]
            if not find(value, "[\0-\8\11\12\14-\31\127]") then
                bits = bits + PRINTABLE_BITS * min(#value, MOST_CHARACTERS)
            elseif step.kind == "text" then
                return 0
            end
        end
    end
    return floor(bits)
end

-- How well the ports suit a dialect: 2 if one end is a broker's and the other a client's, 1 if only the broker's is
-- known, else 0. Two dialects that share ports seldom share both ends.
function evidence.of_ports(dialect, sport, dport)
    local brokers, clients = dialect.broker_ports, dialect.client_ports
    if (brokers[dport] and clients[sport]) or (brokers[sport] and clients[dport]) then
        return 2
    end
    return brokers[dport] ~= brokers[sport] and 1 or 0
end
end)(shared)

-- ==================== 40_results.lua ===============================================================================
;(function(...)
-- What tracking found out, by frame number. Written on the first pass over a file, only read later.
--
-- Plain arrays of numbers instead of one table a frame: a capture of a million messages stays small and quick.
local ts = ...

local results = {}
ts.results = results

local COLUMNS = {
    "dialect", -- place of the dialect that was chosen, where ports alone do not tell
    "link", -- of a request its ACK's frame (0: none yet), of an ACK the request's (0: none; below 0: left open, likely)
    "quality", -- of the match, on the ACK
    "kin", -- of a forward its publish's frame, of a publish the forwards that are due (see subscriptions.due)
    "after", -- of a publish or forward the next forward of the same publish, of an ACK the seconds after its request
    "subscribed_in",
    "marked", -- true where any of the columns below has a value: one look for the common case
    "resend_of",
    "resend_differs", -- true where a resend is not the same bytes
    "candidates", -- of an ACK or forward that is left open: the frames of the requests whose it may be
    "perhaps", -- of a request: the ACKs that may answer it
    "twice", -- of an ACK that nobody waits for: the ACK a moment before it
    "sent_again", -- of a request: the frame in which it is sent again
    "refused", -- true for a request that the broker refuses
    "copy_of",
    "unexpected", -- a forward that is not due: no "filter" takes it, no "subscriber", a "duplicate", no "publish"
    "topic_name", -- the name behind a topic number
    -- not marked:
    "wants_no_ack", -- a request with the id 0
    "delay", -- of a forward: the seconds since its publish
}

local link, kin, after, subscribed_in, delay -- the columns of common values

function results.reset()
    for _, column in ipairs(COLUMNS) do
        results[column] = {}
    end
    link, kin, after, subscribed_in = results.link, results.kin, results.after, results.subscribed_in
    delay = results.delay
end

results.reset()

-- Open the columns of common values for a frame. Lua keeps an array as such only while more than half of it is
-- filled, and as few of them as will do: their length is what a garbage collection takes.
function results.open(frame)
    link[frame], kin[frame], after[frame], subscribed_in[frame], delay[frame] = false, false, false, false, false
end

-- Note something out of the ordinary.
function results.mark(column, frame, value)
    results[column][frame], results.marked[frame] = value, true
end

-- This ACK may answer that request.
function results.add_perhaps(request, ack)
    local known = results.perhaps[request] or {}
    known[#known + 1] = ack
    results.mark("perhaps", request, known)
end

function results.drop_perhaps(request, ack)
    local known = results.perhaps[request]
    for place = #known, 1, -1 do
        if known[place] == ack then
            table.remove(known, place)
        end
    end
    results.perhaps[request] = known[1] and known or nil
end

-- The publish that a frame forwards.
function results.forward_of(frame)
    local publish = kin[frame]
    return type(publish) == "number" and not results.candidates[frame] and publish or nil
end

-- The forwards that a publish should have by the subscriptions seen.
function results.due(frame)
    local due = kin[frame]
    return type(due) == "table" and due or nil
end

-- How many forwards a publish has.
function results.fanout(publish)
    local count, forward = 0, after[publish]
    while forward do
        count, forward = count + 1, after[forward]
    end
    return count
end
end)(shared)

-- ==================== 42_copies.lua ================================================================================
;(function(...)
-- Which datagrams are only copies made by capturing on several interfaces. The twin of pcap_tools/capture/copies.py.
--
-- A copy has the addresses, ports, IP id and bytes of the first one, comes within a millisecond of it, and was seen at
-- another place (packet type and interface). Once a group has two places, a non-zero IP id is proof enough.
--
-- Most files know one place only, and hold no copies: until there is a second one, the last datagrams only wait.
local ts = ...
local abs = math.abs

local copies = {}
ts.copies = copies

local WINDOW = ts.limits.copy_window + 1e-9 -- seconds; the times are doubles
local MOST_GROUPS, MOST_BYTES = ts.limits.copy_groups / 2, 4194304 -- of a generation
local MOST_WAITING = 256

local groups, older, count, bytes, began
local only_place -- so far; nil before the first datagram, false once there are several
local waiting, last_waiting -- a ring of what was seen there, five values each

function copies.reset()
    groups, older, count, bytes, began = {}, {}, 0, 0, 0
    only_place, waiting, last_waiting = nil, {}, 0
end

copies.reset()

-- Two generations of groups: what is in neither is older than the window.
local function forget(now)
    if abs(now - began) > WINDOW or count >= MOST_GROUPS or bytes >= MOST_BYTES then
        groups, older, count, bytes, began = {}, groups, 0, 0, now
    end
end

local function belongs(group, now, place, ip_id)
    if abs(now - group.time) > WINDOW then
        return false
    elseif place ~= group.place then
        group.spread = true
        return true
    end
    return group.spread and ip_id and ip_id ~= 0
end

local function find(name, data, frame, now, place, ip_id)
    forget(now)
    local key = ip_id and name .. ip_id .. ":" .. data or name .. data
    local group = groups[key] or older[key]
    if group and belongs(group, now, place, ip_id) then
        return group.frame
    end
    groups[key] = { frame = frame, time = now, place = place }
    count, bytes = count + 1, bytes + #key
    return nil
end

local function wait(name, data, frame, now, ip_id)
    local at = last_waiting % MOST_WAITING * 5
    waiting[at + 1], waiting[at + 2], waiting[at + 3], waiting[at + 4], waiting[at + 5] = name, data, frame, now, ip_id
    last_waiting = last_waiting + 1
end

local function take_those_that_wait(place)
    for number = math.max(0, last_waiting - MOST_WAITING), last_waiting - 1 do
        local at = number % MOST_WAITING * 5
        find(waiting[at + 1], waiting[at + 2], waiting[at + 3], waiting[at + 4], place, waiting[at + 5])
    end
    waiting, last_waiting = {}, 0
end

-- The frame that this one repeats, or nil. `name` says addresses and ports, `data` the bytes, `place` where it was
-- seen; `ip_id` is false where there is none.
function copies.copy_of(name, data, frame, now, place, ip_id)
    if only_place == nil then
        only_place = place
    elseif only_place and only_place ~= place then
        take_those_that_wait(only_place)
        only_place = false
    end
    if only_place then
        return wait(name, data, frame, now, ip_id)
    end
    return find(name, data, frame, now, place, ip_id)
end
end)(shared)

-- ==================== 44_parties.lua ===============================================================================
;(function(...)
-- Who is the broker? Whoever receives subscriptions and sends what only brokers send; else the ports say it.
local ts = ...

local parties = {}
ts.parties = parties

local ENOUGH_VOTES = 1000
local TO, FROM = "to the broker", "from the broker"
parties.TO, parties.FROM = TO, FROM

for _, dialect in ipairs(ts.dialects) do
    dialect.broker_ports, dialect.client_ports = {}, {}
    for role, ports in pairs(dialect.ports) do
        for _, port in ipairs(ports) do
            dialect[role == "broker" and "broker_ports" or "client_ports"][port] = true
        end
    end
end

local hosts -- by address: by port the party there, and by another address the pair seen last with it
local pair_count, stream_count -- a stream is two pairs, one for each direction

function parties.reset()
    hosts, pair_count, stream_count = {}, 0, 0
end

parties.reset()

local function host_at(address)
    local host = hosts[address]
    if not host then
        host = {}
        hosts[address] = host
    end
    return host
end

-- The one table for an address and port: { address, port, endpoint }.
local function party_at(address, port)
    local host = host_at(address)
    local party = host[port]
    if not party then
        party = { address = address, port = port, endpoint = address .. ":" .. port, pairs = {} }
        host[port] = party
    end
    return party
end

local function other_pair(source, sport, target, dport)
    local from, to = party_at(source, sport), party_at(target, dport)
    local pair = from.pairs[to]
    if not pair then
        pair_count = pair_count + 1
        local back = to.pairs[from]
        local stream = back and back.stream or stream_count
        stream_count = back and stream_count or stream_count + 1
        pair = { number = pair_count, sport = sport, dport = dport, from = from, to = to, route = false }
        pair.stream = stream
        from.pairs[to] = pair
    end
    hosts[source][target] = pair
    return pair
end

-- The one table for two parties, in this direction: { from, to }, and what tracking keeps of them. Found by the two
-- addresses alone where the ports are the last ones seen between them, which they mostly are.
function parties.pair(source, sport, target, dport)
    local host = hosts[source]
    local pair = host and host[target]
    if pair and pair.sport == sport and pair.dport == dport then
        return pair
    end
    return other_pair(source, sport, target, dport)
end

-- The same two in the other direction.
function parties.reverse(pair)
    local from, to = pair.from, pair.to
    return parties.pair(to.address, to.port, from.address, from.port)
end

-- A text for a pair, unlike any other's.
function parties.name(pair)
    pair.name = pair.name or pair.number .. ":"
    return pair.name
end

-- `brokers` counts the evidence for each party, `hosts` for each address.
function parties.new()
    return { brokers = {}, hosts = {} }
end

local function vote(known, party)
    local votes = known.brokers[party] or 0
    if votes < ENOUGH_VOTES then
        known.brokers[party], known.hosts[party.address] = votes + 1, true
    end
end

-- Does the broker pass a publish on under the same name?
local function is_passed_on(dialect, layout)
    local how = dialect.broker.forward[layout.message]
    return layout.meaning == "publish" and (not how or how.same_bytes or how.becomes == layout.message)
end

-- What a message itself says about its direction.
local function told(dialect, layout)
    local sender = layout.sender
    if sender == "broker" then
        return FROM
    elseif sender and not is_passed_on(dialect, layout) then
        return TO
    elseif layout.meaning == "subscribe" or layout.meaning == "unsubscribe" then
        return TO
    elseif layout.meaning == "deliver" then
        return FROM
    end
    return nil
end

for _, dialect in ipairs(ts.dialects) do
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            layout.way = told(dialect, layout)
        end
    end
end

local function by_ports(dialect, sport, dport)
    local broker_ports = dialect.broker_ports
    if broker_ports[dport] and not broker_ports[sport] then
        return TO
    elseif broker_ports[sport] and not broker_ports[dport] then
        return FROM
    end
    return nil
end

-- Which way a message goes. A publish between strangers is taken for one to the broker.
function parties.direction(known, dialect, layout, from, to)
    local way = layout.way
    if way == TO then
        vote(known, to)
        return TO
    elseif way == FROM then
        vote(known, from)
        return FROM
    end
    local source, target = known.brokers[from], known.brokers[to]
    if source and target then
        return target >= source and TO or FROM
    elseif target then
        return TO
    elseif source then
        return FROM
    elseif dialect.broker.forward_from == "ephemeral" and known.hosts[from.address] then
        return FROM
    end
    return by_ports(dialect, from.port, to.port) or (layout.meaning == "ack" and FROM or TO)
end
end)(shared)

-- ==================== 45_queues.lua ================================================================================
;(function(...)
-- The requests of one party to another: those that wait for an ACK, from the oldest to the newest, and the last
-- answered.
--
-- queue[first] to queue[last] hold the waiting ones, and between them some that are done; no more of these than of
-- the others, so that looking through a queue takes as long as it is full, whatever it has seen.
local ts = ...

local queues = {}
ts.queues = queues

local MOST = 512 -- waiting; then the oldest is given up
local FEW = 16 -- these are looked through, of more it is known by a table where each one is
local PAST = 4 -- answered lately
local SLACK = 4
queues.PAST = PAST

function queues.new()
    return {
        first = 1,
        last = 0,
        size = 0,
        same = false,
        latest = false, -- the request sent last
        usual = false, -- seconds from a request to its ACK
        least = false, -- and the shortest of these times
        past = false, -- those answered lately, as a ring
        answers = 0,
    }
end

local function key_of(m)
    return m.layout.message .. "\0" .. m.identity
end

local function is_same(request, m)
    local other = request.m
    return other.identity == m.identity and other.layout.message == m.layout.message
end

local function find_waiting(queue, m)
    if queue.same then
        return queue.same[key_of(m)]
    end
    for place = queue.last, queue.first, -1 do
        local request = queue[place]
        if not request.done and is_same(request, m) then
            return request
        end
    end
    return nil
end

-- The last request that was the same as this message, or nil: one that waits, or was answered lately.
function queues.find(queue, m)
    local found = queue.size > 0 and find_waiting(queue, m)
    if found then
        return found
    end
    for age = 0, PAST - 1 do
        local request = queues.answered(queue, age)
        if not request then
            return nil
        elseif is_same(request, m) then
            return request
        end
    end
    return nil
end

local function note_all(queue)
    local same = {}
    for place = queue.first, queue.last do
        local request = queue[place]
        if not request.done then
            same[key_of(request.m)] = request
        end
    end
    queue.same = same
end

function queues.add(queue, request)
    local last, size = queue.last + 1, queue.size + 1
    queue[last], queue.last, queue.size = request, last, size
    queue.latest = request
    if queue.same then
        queue.same[key_of(request.m)] = request
    elseif size > FEW then
        note_all(queue)
    end
    if size > MOST then
        queues.drop(queue, queue[queue.first])
    end
end

-- All to the front.
local function close_ranks(queue)
    local kept = 0
    for place = queue.first, queue.last do
        local request = queue[place]
        if not request.done then
            kept = kept + 1
            queue[kept] = request
        end
    end
    for place = kept + 1, queue.last do
        queue[place] = false
    end
    queue.first, queue.last = 1, kept
end

-- It waits no more.
function queues.drop(queue, request)
    local first, size, same = queue.first, queue.size - 1, queue.same
    request.done, queue.size = true, size
    if same then
        local key = key_of(request.m)
        if same[key] == request then
            same[key] = nil
        end
        queue.same = size > 0 and same
    end
    if queue[first] == request then
        queue[first], first = false, first + 1
        queue.first = first
    end
    if queue.last > 2 * size + SLACK or size == 0 then
        close_ranks(queue)
    end
end

-- It waits again, as the oldest.
function queues.restore(queue, request)
    if queue.first == 1 then
        for place = queue.last, 1, -1 do
            queue[place + 1] = queue[place]
        end
        queue.first, queue.last = 2, queue.last + 1
    end
    local first = queue.first - 1
    queue[first], queue.first, queue.size = request, first, queue.size + 1
    request.done = false
    if queue.same then
        queue.same[key_of(request.m)] = request
    end
end

-- It was answered, and waits no more.
function queues.answer(queue, request)
    local past, answers = queue.past, queue.answers + 1
    if not past then
        past = {}
        queue.past = past
    end
    past[answers % PAST + 1], queue.answers = request, answers
    queues.drop(queue, request)
end

-- The last answer was to this one.
function queues.correct_answer(queue, request)
    queue.past[queue.answers % PAST + 1] = request
end

-- The requests answered lately, from the newest to the oldest: `age` counts from 0; nil when there are no more.
function queues.answered(queue, age)
    local answers = queue.answers - age
    return answers > 0 and age < PAST and queue.past[answers % PAST + 1] or nil
end
end)(shared)

-- ==================== 46_subscriptions.lua =========================================================================
;(function(...)
-- Which subscriptions are active at a broker, and which of them a topic matches.
local ts = ...
local topics = ts.topics

local subscriptions = {}
ts.subscriptions = subscriptions

function subscriptions.new(dialect)
    return {
        rules = dialect.topics,
        copies = dialect.broker.copies,
        has_sessions = dialect.broker.sessions ~= nil,
        filters = {}, -- filter -> { matches, subscribers = { endpoint -> list of frames } }
        known = {}, -- endpoint -> true once it subscribed to anything
        latest = {}, -- endpoint -> its latest subscription, for retained messages
        matched = {}, -- topic -> what `due` gives, until a subscription changes
    }
end

-- One that is sent again is no other, but what is retained may come again.
function subscriptions.add(subs, filter, endpoint, frame, is_resend)
    local entry = subs.filters[filter]
    if not entry then
        entry = { matches = topics.matcher(subs.rules, filter), subscribers = {} }
        subs.filters[filter] = entry
    end
    local frames = entry.subscribers[endpoint]
    if not frames then
        entry.subscribers[endpoint] = { frame }
        subs.matched = {}
    elseif subs.copies == "per-subscription" and not is_resend then
        frames[#frames + 1] = frame
        subs.matched = {}
    end
    subs.known[endpoint] = true
    subs.latest[endpoint] = { frame = frame, matches = entry.matches }
end

function subscriptions.remove(subs, filter, endpoint)
    local entry = subs.filters[filter]
    if entry and entry.subscribers[endpoint] then
        entry.subscribers[endpoint] = nil
        if next(entry.subscribers) == nil then
            subs.filters[filter] = nil
        end
        subs.matched = {}
    end
end

-- The broker refused what was asked for in this frame.
function subscriptions.refuse(subs, filter, endpoint, frame)
    local entry = subs.filters[filter]
    local frames = entry and entry.subscribers[endpoint]
    for place = frames and #frames or 0, 1, -1 do
        if frames[place] == frame then
            table.remove(frames, place)
            subs.matched = {}
        end
    end
    if frames and not frames[1] then
        subscriptions.remove(subs, filter, endpoint)
    end
end

-- Who gets a message on this topic: { total, frames = { endpoint -> the SUBSCRIBE frame of each copy } }.
function subscriptions.due(subs, topic)
    local due = subs.matched[topic]
    if due then
        return due
    end
    due = { total = 0, frames = {}, may_be_away = subs.has_sessions }
    for _, entry in pairs(subs.filters) do
        if entry.matches(topic) then
            for endpoint, frames in pairs(entry.subscribers) do
                local mine = due.frames[endpoint] or {}
                due.frames[endpoint] = mine
                for _, frame in ipairs(frames) do
                    if subs.copies ~= "per-subscriber" or not mine[1] then
                        mine[#mine + 1] = frame
                        due.total = due.total + 1
                    elseif frame < mine[1] then
                        mine[1] = frame
                    end
                end
            end
        end
    end
    for _, frames in pairs(due.frames) do
        table.sort(frames)
    end
    subs.matched[topic] = due
    return due
end
end)(shared)

-- ==================== 47_requests.lua ==============================================================================
;(function(...)
-- What the tables say about requests and ACKs, made ready: who answers what, and what makes two sends the same one.
local ts = ...
local byte, sub, concat = string.byte, string.sub, table.concat

local requests = {}
ts.requests = requests

local LONG = 256
requests.LONG = LONG

local function set_of(list)
    local set = {}
    for _, name in ipairs(list) do
        set[name] = true
    end
    return set
end

-- The steps that make two sends of a request the same one: no constants, no lengths, nothing a resend may change.
local function identity_steps(layout, may_change)
    local kept = {}
    for index, step in ipairs(layout.steps) do
        local constant = step.kind == "magic" or (step.guards and #step.guards == 1)
        if not constant and not step.counts and not may_change[step.name] then
            kept[#kept + 1] = index
        end
    end
    return kept
end

local function each_layout(dialect, visit)
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            visit(layout)
        end
    end
end

local function prepare(dialect)
    local may_change, owed, acks = set_of(dialect.client.may_change), set_of(dialect.client.acks), {}
    local id_name
    each_layout(dialect, function(layout)
        layout.identity = identity_steps(layout, may_change)
        if layout.meaning == "ack" then
            layout.answers = set_of(layout.acks)
            layout.answers_any = layout.answers.any or false
            acks[#acks + 1] = layout
            id_name = layout.acks_by_step and layout.acks_by or id_name
            dialect.has_echoes = dialect.has_echoes or layout.acks_by == "echo"
            dialect.has_copies = dialect.has_copies or layout.acks_by == "copy"
        end
    end)

    local function is_answered(message, by_broker)
        for _, ack in ipairs(acks) do
            local can = ack.sender == nil or (ack.sender == "broker") == by_broker
            if can and (ack.answers_any or ack.answers[message]) then
                return true
            end
        end
        return false
    end
    each_layout(dialect, function(layout)
        local asks = layout.meaning ~= "ack"
        layout.broker_answers = asks and is_answered(layout.message, true)
        layout.client_answers = asks and owed[layout.message] and is_answered(layout.message, false) or false
        layout.echo = dialect.has_echoes and identity_steps(layout, {}) or nil
        for index, step in ipairs(layout.steps) do
            layout.id_step = step.name == id_name and index or layout.id_step
            layout.number_step = step.name == dialect.topics.number and index or layout.number_step
            layout.port_step = step.name == dialect.broker.subscriber_port and index or layout.port_step
        end
        layout.has_keys = layout.id_step or layout.number_step or layout.port_step or layout.echo
        local steps = layout.identity
        layout.content_is_identity = #steps == 2 and steps[1] == layout.topic and steps[2] == layout.payload
    end)
end

for _, dialect in ipairs(ts.dialects) do
    prepare(dialect)
end

local function checksum(text)
    local sum = 0
    for at = 1, #text - 3, 4 do
        local a, b, c, d = byte(text, at, at + 3)
        sum = (sum * 31 + a + b * 7 + c * 61 + d * 509) % 4294967291
    end
    return sum
end

-- A text that stands for a long one, so that what is remembered does not grow with the messages' sizes.
function requests.short(text)
    if #text <= LONG then
        return text
    end
    return sub(text, 1, 96) .. sub(text, -64) .. "\0" .. #text .. "\0" .. checksum(text)
end

local buffer = {}

-- The values of these steps as one text.
function requests.joined(w, steps)
    local count = 0
    for place = 1, #steps do
        local index = steps[place]
        if index <= w.count then
            count = count + 1
            buffer[count] = w.values[index]
        end
    end
    return requests.short(concat(buffer, "\0", 1, count))
end
end)(shared)

-- ==================== 48_acks.lua ==================================================================================
;(function(...)
-- Which ACK answers which request: the pairing of docs/checking.md, told as the packets come.
--
-- Each party has a queue of requests to each other one. An ACK with an id, an echo or a nested copy finds its request
-- by that. One without answers the oldest request that its anchors allow: a broker sends the forwards and the ACK of
-- one request in the dialect's fixed order, so the forward beside an ACK says whose it is.
--
-- Quality of a match: exact (one outstanding, sent once), anchored (several, the forwards decide), resent (sent more
-- than once: which send was answered is unknown), queued (several, and nothing decides: the ACK names each of them),
-- none (nothing outstanding).
local ts = ...
local results, queues = ts.results, ts.queues
local find, abs, max, min = string.find, math.abs, math.max, math.min

local acks = {}
ts.acks = acks

-- Seconds; the same as the checker's (spark_analysis/checker/kernels/pairing.py).
local DOUBLED = 0.010 -- the network's copy of a datagram comes within this time
local DOUBLED_BY_ID = 0.5 -- where the IP id tells
local REPEATED = 0.050 -- the same again so soon after its ACK is no new request
local FRESH = 0.050 -- what was sent so lately is more likely answered now than what was sent long ago
local COMPARABLE = 3 -- times as long a wait is about as long
local TWICE = 0.020 -- an ACK that comes once more comes soon
-- In times of the dialect's resend:
local OVER = 6 -- nothing is sent again, or answered, any more
local PATIENCE = 1.5 -- a request whose last send is older waits for no ACK

-- -- requests
-- --------------------------------------------------------------------------------------------------------

-- Is this message, the same as a request, another send of it, or one that the network made two of?
local function repeats(queue, request, m, now, ip_id, resend, may_resend)
    local gap = now - request.last_time
    if ip_id > 0 and request.ip_id == ip_id and gap < DOUBLED_BY_ID then
        return true
    elseif not may_resend or m.id == 0 or gap > OVER * resend then
        return false
    elseif not request.answered or m.id then
        return true
    elseif queue.latest ~= request then
        return false -- the sender has gone on to something else
    end
    return (now - request.ack_at < REPEATED and gap < 0.8 * resend) or (gap > 0.9 * resend and gap < 1.2 * resend)
end

-- The same message again, in a dialect whose clients send nothing again: perhaps one does all the same, just when the
-- ACK was late. Then this send is as good a guess as the first, and the first waits no longer.
local function supersede(queue, before, now, resend)
    local gap = now - before.last_time
    if not before.done and gap > 0.8 * resend and gap < 1.3 * resend then
        queues.drop(queue, before)
    end
end

-- A waiting request in whose place this message stands with another payload, just when that would be sent again.
local function altered(queue, m, now, resend)
    for place = queue.first, queue.last do
        local request = queue[place]
        local asked = request.m
        if not request.done and (request.sends or 1) <= 2 and asked.layout.message == m.layout.message then
            local gap = now - request.last_time
            if asked.topic == m.topic and asked.id == m.id and gap > 0.8 * resend and gap < 1.3 * resend then
                return request
            end
        end
    end
    return nil
end

-- A request is sent: its record, and whether this is one more send of it. The record also serves as that of a
-- publish. `ip_id` counts where nobody sends anything again: what the network made two of is known by it.
function acks.request(queue, m, frame, now, ip_id, dialect, may_resend)
    local before = queues.find(queue, m)
    if before and not repeats(queue, before, m, now, ip_id, dialect.resend_after, may_resend) then
        if not dialect.has_resends then
            supersede(queue, before, now, dialect.resend_after)
        end
        before = nil
    end
    if may_resend and not before and queue.size > 0 and m.payload and m.payload ~= "" then
        before = m.id ~= 0 and altered(queue, m, now, dialect.resend_after)
    end
    if before then
        results.mark("sent_again", before.last_frame or before.frame, frame)
        results.mark("resend_of", frame, before.frame)
        before.sends, before.last_frame, before.last_time = (before.sends or 1) + 1, frame, now
        before.ip_id, queue.latest = ip_id, before
        if m.bytes ~= before.m.bytes then
            results.resend_differs[frame] = true
        end
        return before, true
    end
    -- Sixteen fields at most, so that Lua makes the table in its final size. Others are there where they are not as
    -- usual: `sends`, `last_frame`, `tie`, `alike`, `ip_id`; as a publish (see forwards) also `before`.
    local request = {
        frame = frame,
        time = now,
        last_time = now,
        m = m,
        queue = queue,
        acks = 0,
        done = false,
        answered = false, -- the frame of its ACK
        ack_at = 0,
        ack_ip = 0,
        forwarded = false,
        due = false, -- from here on as a publish
        left = 0,
        got = false,
        last = frame,
    }
    if ip_id > 0 then
        request.ip_id = ip_id
    end
    results.link[frame] = 0
    if m.id == 0 then
        results.wants_no_ack[frame] = true
    end
    queues.add(queue, request)
    return request, false
end

-- -- ACKs
-- ------------------------------------------------------------------------------------------------------------

-- Does this ACK, by what it carries, fit this request?
local function fits(ack, request)
    local layout, asked = ack.layout, request.m
    if not (layout.answers_any or layout.answers[asked.layout.message]) then
        return false
    elseif layout.acks_by == "order" then
        return true
    elseif layout.acks_by == "echo" then
        return asked.echo == ack.echo
    elseif layout.acks_by == "copy" then
        return find(ack.bytes, asked.bytes, 1, true) ~= nil
    end
    return ack.id ~= nil and asked.id == ack.id
end

local function settle(request, frame, now, quality)
    request.acks = request.acks + 1
    results.link[frame], results.after[frame] = request.frame, now - request.time
    if quality ~= "exact" then
        results.quality[frame] = quality
    end
    if request.acks == 1 then
        results.link[request.frame] = frame
        if request.last_frame then
            results.link[request.last_frame] = frame
        end
    end
end

-- Requests that share ACKs of which nothing tells whose they are: `acks` of them for `members` requests. Once there
-- are as many, no further ACK can be for one of them.
local function tie_together(open)
    local tie = { acks = 1, members = 0 }
    for _, request in ipairs(open) do
        local other = request.tie
        if other ~= tie then
            if other and not other.is_counted then
                tie.acks, tie.members, other.is_counted = tie.acks + other.acks, tie.members + other.members, tie
            elseif not other then
                tie.members = tie.members + 1
            end
            request.tie = tie
        end
    end
end

local function tie_of(request)
    local tie = request.tie
    while tie and tie.is_counted do -- it has become part of another
        tie = tie.is_counted
        request.tie = tie
    end
    return tie
end

local function is_doubtful(request)
    local tie = tie_of(request)
    return (tie and tie.acks < tie.members) or request.acks < (request.sends or 1)
end

-- Nothing tells which of these requests it answers. The one that is most likely counts as answered from here on.
local function leave_open(request, open, frame, now)
    local frames = {}
    for place, other in ipairs(open) do
        frames[place] = other.frame
        results.add_perhaps(other.frame, frame)
        tie_of(other)
    end
    tie_together(open)
    request.acks = request.acks + 1
    results.mark("candidates", frame, frames)
    results.link[frame], results.after[frame], results.quality[frame] = -request.frame, now - request.time, "queued"
end

-- It was left open, and now is not.
local function decide(request, frame, now)
    for _, other in ipairs(results.candidates[frame]) do
        results.drop_perhaps(other, frame)
    end
    results.candidates[frame] = nil
    settle(request, frame, now, "anchored")
end

local function is_doubled(request, now, ip_id)
    if ip_id > 0 or request.ack_ip > 0 then
        return ip_id == request.ack_ip and now - request.ack_at < DOUBLED_BY_ID
    end
    return now - request.ack_at < DOUBLED
end

-- The request whose ACK the network doubled into this one.
local function doubled(queue, ack, now, ip_id)
    for age = 0, queues.PAST - 1 do
        local request = queues.answered(queue, age)
        if not request then
            return nil
        elseif ip_id > 0 and is_doubled(request, now, ip_id) and fits(ack, request) then
            return request
        end
    end
    return nil
end

-- An answered request to a resend of which this is one more ACK, if any; else one that was answered a moment ago.
local function answered_again(queue, ack, now, ip_id, resend)
    local twice = nil
    for age = 0, queues.PAST - 1 do
        local request = queues.answered(queue, age)
        if not request then
            break
        elseif fits(ack, request) then
            local waited, is_copy = now - request.last_time, is_doubled(request, now, ip_id)
            if waited > PATIENCE * resend then
                break
            elseif is_copy and ip_id > 0 then
                return request, nil
            elseif request.acks < (request.sends or 1) and 2 * waited < resend and not is_copy then
                return request, nil
            end
            twice = twice or (now - request.ack_at < TWICE and request) or nil
        end
    end
    return nil, twice
end

local open = {} -- what the search below finds: requests that may be answered

-- Requests whose ACK was left open a moment ago, or that wait about as long as the likely one: this ACK may be
-- theirs, and that one have been another's. So are those that were sent more often than answered.
local function add_doubtful(queue, ack, now, chosen, count, alone)
    local limit = max(FRESH, COMPARABLE * (now - chosen.last_time))
    for age = 0, queues.PAST - 1 do
        local request = queues.answered(queue, age)
        if not request then
            break
        elseif is_doubtful(request) and now - request.last_time <= limit and fits(ack, request) then
            count, alone = count + 1, request.forwarded and alone or alone + 1
            open[count] = request
        end
    end
    return count, alone
end

-- Nothing is answered in half the time that an answer ever took: those that were only just sent are taken out, if
-- others are left.
local function drop_the_newest(count, now, least)
    local kept = 0
    for place = 1, count do
        local request = open[place]
        if now - request.last_time >= least / 2 then
            kept = kept + 1
            open[kept] = request
        end
    end
    return kept > 0 and kept or count
end

-- The request that this ACK answers most likely, its rank, and how many there are, and of them without forwards. What
-- is named alike was sent alike, and is answered in order. Else best is the one that the anchor names; then one
-- without forwards, beside which its ACK would stand; of equals the one that has waited as long as is usual, or where
-- nothing is known, the oldest of the fresh.
local function search(queue, ack, now, anchor, dialect)
    local resend, usual = dialect.resend_after, queue.usual
    local is_named = ack.layout.acks_by ~= "order"
    local chosen, rank, oddity, count, alone = nil, 0, 0, 0, 0
    for place = queue.first, queue.last do
        local request = queue[place]
        local age = not request.done and now - request.last_time
        if age and age <= PATIENCE * resend and fits(ack, request) then
            count = count + 1
            open[count] = request
            local worth = request == anchor and 3 or request.forwarded and 1 or 2
            alone = request.forwarded and alone or alone + 1
            local unusual = usual and not is_named and abs(age - usual) or (age > FRESH and 1 or 0)
            if worth > rank or (worth == rank and unusual < oddity) then
                chosen, rank, oddity = request, worth, unusual
            end
        end
    end
    return chosen, rank, count, alone
end

-- Brokers work in order: an older request that was to be forwarded, and was not, makes an anchor doubtful.
local function is_in_order(chosen, now, count)
    for place = 1, count do
        local other = open[place]
        if other == chosen then
            return true
        elseif not other.forwarded and other.due and other.due.total > 0 and now - other.last_time <= FRESH then
            return false
        end
    end
    return true
end

local function quality_of(chosen, count, rank, alone, now, dialect)
    if count == 1 then
        return chosen.sends and "resent" or "exact"
    elseif rank == 3 or (dialect.forwards_first and alone == 1 and rank == 2) then
        return is_in_order(chosen, now, count) and (chosen.sends and "resent" or "anchored") or "queued"
    end
    return "queued"
end

-- An ACK comes: the request that it answers, or nil, and whether that is left open. `anchor` is the request to which
-- the forward beside it belongs, where the dialect's brokers send the forwards first.
function acks.answer(queue, ack, frame, now, ip_id, dialect, anchor)
    local is_named = ack.layout.acks_by ~= "order"
    local before = not is_named and queue.answers > 0 and doubled(queue, ack, now, ip_id)
    if before then
        settle(before, frame, now, "resent")
        return before
    end
    local chosen, rank, count, alone = search(queue, ack, now, anchor, dialect)
    if not chosen then
        local twice
        before, twice = answered_again(queue, ack, now, ip_id, dialect.resend_after)
        if before then
            settle(before, frame, now, "resent")
            results.link[frame], results.after[frame] = before.last_frame, now - before.last_time
            return before
        end
        results.link[frame], results.quality[frame] = 0, "none"
        if twice then
            results.mark("twice", frame, twice.answered)
        end
        return nil
    end
    if not is_named and rank < 3 and queue.answers > 0 then
        count, alone = add_doubtful(queue, ack, now, chosen, count, alone)
    end
    if rank < 3 and count > 1 and queue.least then
        count = drop_the_newest(count, now, queue.least)
    end
    for place = count + 1, #open do
        open[place] = nil
    end
    local quality = quality_of(chosen, is_named and 1 or count, rank, alone, now, dialect)
    if quality == "queued" then
        leave_open(chosen, open, frame, now)
    else
        settle(chosen, frame, now, quality)
        if quality == "exact" then
            local took, usual = now - chosen.time, queue.usual
            queue.usual, queue.least = usual and (3 * usual + took) / 4 or took, min(queue.least or took, took)
        end
    end
    chosen.answered, chosen.ack_at, chosen.ack_ip = frame, now, ip_id
    queues.answer(queue, chosen)
    return chosen, quality == "queued"
end

-- Is there no older one that was to be forwarded before it?
local function is_first(queue, guess, served, now)
    local count = 0
    if guess and guess.frame < served.frame then
        count, open[1] = 1, guess
    end
    for place = queue.first, queue.last do
        local other = queue[place]
        if not other.done and other.frame < served.frame then
            count = count + 1
            open[count] = other
        end
    end
    return is_in_order(served, now, count)
end

local function is_candidate(request, frame)
    for _, other in ipairs(results.candidates[frame] or {}) do
        if other == request.frame then
            return true
        end
    end
    return false
end

-- Where the ACK goes first: the forward right after it belongs to `served`, so an ACK that was left open was for
-- that.
function acks.correct(guess, served)
    local frame, now, queue = guess.answered, guess.ack_at, guess.queue
    if not frame or queue ~= served.queue or not is_candidate(served, frame) then
        return
    elseif guess ~= served then
        if served.done or not is_first(queue, guess, served, now) then
            return
        end
        queues.drop(queue, served)
        queues.restore(queue, guess)
        guess.acks, guess.answered = 0, false
        served.answered, served.ack_at, served.ack_ip = frame, now, guess.ack_ip
        queues.correct_answer(queue, served)
    elseif not is_first(queue, nil, served, now) then
        return
    else
        guess.acks = 0
    end
    guess.tie, served.tie = nil, nil
    decide(served, frame, now)
end
end)(shared)

-- ==================== 49_messages.lua ==============================================================================
;(function(...)
-- What tracking and the columns need of a datagram, worked out once for all datagrams of the same bytes.
--
-- Publish/subscribe traffic repeats itself: a forward is its publish again, ACKs are all alike. Only the packet details
-- need more, and decode anew.
local ts = ...
local decode, requests, topics, remember = ts.decode, ts.requests, ts.topics, ts.remember
local sub = string.sub

local messages = {}
ts.messages = messages

local MOST_KEPT, LONGEST_KEPT, LONG = 1024, 512, requests.LONG
local NOTHING = { meaning = "nothing" } -- the layout of what was not recognised

for _, dialect in ipairs(ts.dialects) do
    if dialect.topics.wildcards then
        dialect.has_wildcard = remember(function(topic)
            return topics.has_wildcard(dialect.topics, topic)
        end)
    end
end

local kept, count
local last_data, last_dialect, last_message -- a datagram is asked for twice, and most forwards follow at once

function messages.reset()
    kept, count = {}, 0
    last_data = nil
    for _, dialect in ipairs(ts.dialects) do
        kept[dialect] = {}
    end
end

messages.reset()

local function value_of(w, step)
    if step and step <= w.count then
        return w.values[step]
    end
    return nil
end

local function accepts(step, value)
    for _, accepted in ipairs(step.accepted) do
        if value == accepted then
            return true
        end
    end
    return false
end

local PUBLISHES = { publish = true, deliver = true }

-- The fields of common messages at once, and only eight, so that Lua makes the table in its final size: layout, columns
-- and the keys by which tracking knows a message. `line` is for the Info column, `bytes` tell a changed resend.
local function message_of(dialect, w, data)
    local layout, topic, payload = w.selected and w.layout or NOTHING, w.topic, w.payload
    local content = topic and (payload and topic .. "\0" .. payload or topic)
    local m = {
        layout = layout,
        topic = topic,
        payload = payload,
        retain = w.retain,
        content = content and #content > LONG and requests.short(content) or content,
        identity = false,
        line = false,
        bytes = w.padding > 0 and sub(data, 1, #data - w.padding) or data,
    }
    if w.filter then
        m.filter = w.filter
    end
    if w.error then
        m.error, m.error_offset, m.is_odd = w.error, w.error_offset, true
        return m
    end
    if layout.broker_answers or layout.client_answers then
        m.identity = layout.content_is_identity and m.content or requests.joined(w, layout.identity)
    end
    if #data > LONG and not dialect.has_copies then
        m.bytes = requests.short(m.bytes)
    end
    if layout.has_keys then
        m.id, m.number = value_of(w, layout.id_step), value_of(w, layout.number_step)
        m.listens_on = value_of(w, layout.port_step)
        m.echo = layout.echo and requests.joined(w, layout.echo)
    end
    local code = layout.code
    if code and code <= w.count and layout.steps[code].accepted then
        m.is_refusal = not accepts(layout.steps[code], w.values[code])
        m.is_odd = m.is_refusal
    end
    if topic and dialect.has_wildcard and PUBLISHES[layout.meaning] and dialect.has_wildcard(topic) then
        m.has_wildcard, m.is_odd = true, true
    end
    return m
end

-- The message in this datagram; `length` is its true length where the capture cut it short.
function messages.read(dialect, data, length)
    if length ~= #data or length > LONGEST_KEPT then
        return message_of(dialect, decode(dialect, data, length), data)
    elseif data == last_data and dialect == last_dialect then
        return last_message
    end
    local m = kept[dialect][data]
    if not m then
        m = message_of(dialect, decode(dialect, data, length), data)
        if count >= MOST_KEPT then
            messages.reset()
        end
        kept[dialect][data] = m
        count = count + 1
    end
    last_data, last_dialect, last_message = data, dialect, m
    return m
end
end)(shared)

-- ==================== 50_forwards.lua ==============================================================================
;(function(...)
-- Which forward belongs to which publish, and to which subscription.
--
-- A publish is remembered by its content (topic and payload). A forward belongs to the oldest open publish of the
-- same content that still owes its receiver a copy; else it is a retained message; else nobody subscribed to it.
local ts = ...
local results, subscriptions = ts.results, ts.subscriptions

local forwards = {}
ts.forwards = forwards

local MOST_KEPT = 512 -- publishes in each of two generations
local MOST_ALIKE = 64 -- open ones of the same content
local LATE = 3 -- seconds
forwards.LATE = LATE
local MOMENT, HORIZON = 0.050, 30 -- seconds: brokers answer at once; a forward later than that is none of the publish's

function forwards.new()
    return { recent = {}, older = {}, count = 0, retained = {}, spare = false }
end

-- A publish reaches the broker. `request` is its record among the requests, if it is to be acknowledged; the same
-- record then serves as that of the publish. Publishes of the same content are linked from the newest to the older
-- ones; whole generations are forgotten, never single ones.
function forwards.publish(state, content, topic, frame, now, due, retain, request, is_resend)
    local publish, total = request, due.total
    if is_resend then -- it may be served again: what the first send still owed is owed by this one
        request.left = 0
        publish = { frame = frame, time = now, last = frame, got = false, queue = request.queue, resend_of = request }
    elseif not publish then
        publish = { frame = frame, time = now, last = frame, got = false }
    end
    publish.due, publish.left = due, total
    local before = state.recent[content] or state.older[content]
    while before and before.left <= 0 do
        before = before.before
    end
    if before then
        local alike = (before.alike or 0) + 1
        if alike <= MOST_ALIKE then
            publish.before, publish.alike = before, alike
        end
    end
    results.kin[frame] = due
    if state.count >= MOST_KEPT then
        state.recent, state.older, state.count = {}, state.recent, 0
    end
    state.recent[content] = publish
    state.count = state.count + 1
    if retain then
        state.retained[topic] = { publish = publish, content = content }
    end
    return publish
end

local function add_forward(publish, frame, now)
    results.after[publish.last] = frame
    local delay = now - publish.time
    results.kin[frame], results.delay[frame] = publish.frame, delay
    if delay >= LATE then
        results.marked[frame] = true
    end
    publish.last = frame
end

local function give(state, publish, endpoint, frame, now)
    local got = publish.got
    if not got then
        got = state.spare or {}
        publish.got, state.spare = got, false
    end
    local count = (got[endpoint] or 0) + 1
    got[endpoint] = count
    local left = publish.left - 1
    publish.left = left
    if left == 0 then
        publish.got = false
        for known in pairs(got) do
            got[known] = 0
        end
        state.spare = got -- for the next one, most likely with the same subscribers
    end
    add_forward(publish, frame, now)
    local frames = publish.due.frames[endpoint]
    if frames then
        results.subscribed_in[frame] = frames[count] or frames[#frames]
    end
    return publish.resend_of or publish
end

local function owes(publish, endpoint)
    local frames = publish.due.frames[endpoint]
    return frames and (publish.got and publish.got[endpoint] or 0) < #frames
end

-- The publish of this content that owes the receiver a copy: of several that are but a moment old the first, since
-- brokers work in order, else the latest, since they answer at once. And another one that may be it as well.
local function owing(newest, endpoint, now)
    local found, other, publish = nil, nil, newest
    while publish do
        local age = now - publish.time
        if age > HORIZON then
            break
        elseif publish.left > 0 and owes(publish, endpoint) then
            if not found or age <= MOMENT then
                found, other = publish, found
            end
            if age > MOMENT then
                break
            end
        end
        publish = publish.before
    end
    return found, other
end

local function retained_for(state, subs, content, topic, endpoint)
    local kept, latest = state.retained[topic], subs.latest[endpoint]
    if kept and latest and kept.content == content and latest.frame > kept.publish.frame and latest.matches(topic) then
        return kept.publish, latest
    end
    return nil
end

-- A forward goes to `endpoint`. Gives its publish (of a resend the first send), or nil where none explains it, and
-- whether it may be another's.
function forwards.forward(state, subs, content, topic, endpoint, frame, now)
    local newest = state.recent[content] or state.older[content]
    local publish, other = owing(newest, endpoint, now)
    if publish then
        if other then
            results.mark("candidates", frame, { publish.frame, other.frame })
        end
        return give(state, publish, endpoint, frame, now), other ~= nil
    end
    local kept, latest = retained_for(state, subs, content, topic, endpoint)
    if kept then
        results.kin[frame], results.subscribed_in[frame] = kept.frame, latest.frame
        return nil -- it belongs to the SUBSCRIBE, and anchors no publish
    end
    local due = newest and newest.due or subscriptions.due(subs, topic)
    local frames = due.frames[endpoint]
    if not frames then
        results.mark("unexpected", frame, subs.known[endpoint] and "filter" or "subscriber")
    else
        results.mark("unexpected", frame, newest and "duplicate" or "publish")
        results.subscribed_in[frame] = frames[1]
    end
    return newest and give(state, newest, endpoint, frame, now)
end

-- A broker sends a forward again, for want of an ACK: it is the same one.
function forwards.again(frame, first)
    local publish = results.forward_of(first)
    if publish then
        results.kin[frame], results.subscribed_in[frame] = publish, results.subscribed_in[first]
    end
end

-- The broker refused a publish: nothing of it is due.
function forwards.refuse(publish)
    publish.due, publish.left = { total = 0, frames = {} }, 0
    results.kin[publish.frame] = publish.due
end
end)(shared)

-- ==================== 52_tracking.lua ==============================================================================
;(function(...)
-- One message after the other, on the first pass: parties, subscriptions, requests and ACKs, publishes and forwards.
local ts = ...
local results, copies, parties, acks, forwards = ts.results, ts.copies, ts.parties, ts.acks, ts.forwards
local subscriptions, topics, numbers, requests = ts.subscriptions, ts.topics, ts.numbers, ts.requests
local messages, queues = ts.messages, ts.queues
local TO, FROM, direction, open = parties.TO, parties.FROM, parties.direction, results.open

local max = math.max

local tracking = {}
ts.tracking = tracking

local DEFAULT_RESEND = ts.limits.default_resend

local function place_of(list, wanted)
    for place, duty in ipairs(list or {}) do
        if duty == wanted then
            return place
        end
    end
    return nil
end

for _, dialect in ipairs(ts.dialects) do
    local order = dialect.broker.order.publish
    local ack, forward = place_of(order, "ack"), place_of(order, "forward")
    dialect.forwards_first = ack ~= nil and forward ~= nil and forward < ack
    dialect.acks_first = ack ~= nil and forward ~= nil and ack < forward
    dialect.has_resends = dialect.client.resend_after ~= nil
    dialect.resend_after = dialect.client.resend_after or DEFAULT_RESEND
    dialect.has_sessions = dialect.broker.sessions ~= nil
    dialect.names_by_client = false
    for _, how in pairs(dialect.broker.forward) do
        for _, field in ipairs(how.fresh or {}) do
            dialect.names_by_client = dialect.names_by_client or field == dialect.topics.number
        end
    end
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            layout.names_topics = layout.message == dialect.topics.named_by
            layout.forward = dialect.broker.forward[layout.message]
            layout.has_number_topic = layout.topic ~= nil and layout.topic == layout.number_step
            local changes = layout.forward and layout.forward.topic_without
            local by_address = dialect.topics.kind == "source-address"
            layout.has_plain_topic = layout.topic and not (layout.has_number_topic or changes or by_address)
        end
    end
end

local sessions
local latest -- when the last message came

-- How many seconds of the capture come after a time.
function tracking.left(time)
    return max(0, latest - time)
end

function tracking.reset()
    sessions, latest = {}, 0
    results.reset()
    copies.reset()
    parties.reset()
    messages.reset()
end

tracking.reset()

-- The IP id of the packet at hand, 0 where it is not known; Wireshark's side gives a better one.
function tracking.ip_id()
    return 0
end

local function session_of(dialect)
    local session = sessions[dialect]
    if not session then
        session = { parties = parties.new(), brokers = {}, names = {} }
        sessions[dialect] = session
    end
    return session
end

local function broker_of(session, dialect, party)
    local key = dialect.broker.forward_from == "ephemeral" and party.address or party
    local broker = session.brokers[key]
    if not broker then
        broker = { subs = subscriptions.new(dialect), forwards = forwards.new() }
        broker.beside, broker.guess = false, false
        session.brokers[key] = broker
    end
    return broker
end

local function add_route(pair, dialect, asked, owed)
    pair.route = {
        dialect = dialect,
        session = session_of(dialect),
        asked = asked, -- what `from` asked of `to`
        owed = owed, -- and the other way round
        receiving = false, -- the broker where it is `to`, once it was
        sending = false,
        other = pair.route, -- of another dialect
    }
end

-- All that tracking needs for messages of a dialect from one party to another, looked up once.
local function route_of(pair, dialect)
    local route = pair.route
    while route and route.dialect ~= dialect do
        route = route.other
    end
    if route then
        return route
    end
    local back, asked, owed = parties.reverse(pair), queues.new(), queues.new()
    if back == pair then -- a party that talks to itself
        owed = asked
    else
        add_route(back, dialect, owed, asked)
    end
    add_route(pair, dialect, asked, owed)
    return pair.route
end

local function receiving_broker(route, party)
    route.receiving = route.receiving or broker_of(route.session, route.dialect, party)
    return route.receiving
end

local function sending_broker(route, party)
    route.sending = route.sending or broker_of(route.session, route.dialect, party)
    return route.sending
end

-- -- topic numbers and their names
-- -----------------------------------------------------------------------------------

-- A number means what its client was told, or said itself when it created the topic.
local function names_of(session, client)
    local names = session.names[client]
    if not names then
        names = {}
        session.names[client] = names
    end
    return names
end

local function bind_name(session, dialect, client, number, name)
    local names = names_of(session, client)
    if dialect.has_sessions or not names[number] then -- elsewhere a number keeps its first name
        names[number] = name
    end
end

-- Under which topic the broker files a message, its name if the topic is a number, and the content by which its
-- forwards are known.
local function topic_of(session, dialect, m, client, is_publish)
    local layout = m.layout
    if layout.has_plain_topic and m.topic then -- it may be absent, where it is optional
        return m.topic, nil, m.content
    elseif layout.has_number_topic then
        local name = nil -- behind the number in a forward: that of its publish
        if is_publish or dialect.names_by_client then
            name = names_of(session, client)[m.number]
        end
        local content = m.content
        if name and dialect.names_by_client then
            content = requests.short(name .. "\0" .. (m.payload or ""))
        end
        return name or m.topic or "", name, content
    elseif dialect.topics.kind == "source-address" then
        return client.address, nil, requests.short(m.payload or "")
    end
    local word = is_publish and layout.forward and layout.forward.topic_without
    if word and m.topic then
        local topic = topics.without(m.topic, word)
        return topic, nil, requests.short(topic .. "\0" .. (m.payload or ""))
    end
    return m.topic or "", nil, m.content or ""
end

-- -- messages by meaning
-- ---------------------------------------------------------------------------------------------

local function on_publish(session, dialect, broker, m, frame, now, from, asked, is_resend)
    local topic, name, content = topic_of(session, dialect, m, from, true)
    if name then
        results.mark("topic_name", frame, name)
    end
    local due = broker.subs.matched[topic] or subscriptions.due(broker.subs, topic)
    local keeps = m.retain and dialect.broker.retained ~= "none"
    forwards.publish(broker.forwards, content, topic, frame, now, due, keeps, asked, is_resend)
end

local function on_forward(session, dialect, broker, m, frame, now, to)
    local topic, name, content = topic_of(session, dialect, m, to, false)
    local served, is_open = forwards.forward(broker.forwards, broker.subs, content, topic, to.endpoint, frame, now)
    if m.layout.has_number_topic then
        name = name or results.topic_name[results.forward_of(frame) or 0]
        if name then
            results.mark("topic_name", frame, name)
        end
    end
    if served and not is_open then
        served.forwarded = true
        if broker.guess and served.queue then
            acks.correct(broker.guess, served)
        end
    end
    broker.guess, broker.beside = false, served and not is_open and served or false
end

local function subscriber(m, from)
    if m.listens_on then
        return from.address .. ":" .. numbers.text(m.listens_on)
    end
    return from.endpoint
end

local function refuse(broker, request, client)
    local asked = request.m
    results.mark("refused", request.frame, true)
    if asked.layout.meaning == "subscribe" and asked.filter then
        subscriptions.refuse(broker.subs, asked.filter, subscriber(asked, client), request.frame)
    elseif request.due then
        forwards.refuse(request)
    end
end

local function on_ack(route, dialect, way, m, frame, now, from, to)
    local broker = way == TO and receiving_broker(route, to) or (route.sending or sending_broker(route, from))
    local anchor = nil
    if way == FROM then
        anchor = dialect.forwards_first and broker.beside or nil
        broker.guess, broker.beside = false, false
    end
    local answered, is_open = acks.answer(route.owed, m, frame, now, tracking.ip_id(), dialect, anchor)
    if not answered then
        return
    end
    if way == FROM and is_open and dialect.acks_first then
        broker.guess = answered
    end
    if m.is_refusal and way == FROM and not is_open then
        refuse(broker, answered, to)
    end
    local asked = answered.m
    local name = m.number and dialect.topics.named_by and (asked.topic or asked.filter)
    if name and not asked.layout.has_number_topic then -- the number as a text is no name
        bind_name(route.session, dialect, way == TO and from or to, m.number, name)
    end
end

-- Takes in one valid message from one party to another.
function tracking.message(dialect, m, frame, now, pair)
    local route, from, to, layout = pair.route, pair.from, pair.to, m.layout
    if not route or route.dialect ~= dialect then
        route = route_of(pair, dialect)
    end
    local session, meaning = route.session, layout.meaning
    open(frame)
    latest = now
    local way = direction(session.parties, dialect, layout, from, to)
    if meaning == "ack" then
        return on_ack(route, dialect, way, m, frame, now, from, to)
    end
    local is_request = way == TO
    local broker = is_request and (route.receiving or receiving_broker(route, to))
        or (route.sending or sending_broker(route, from))
    local asked, is_resend = nil, false
    if is_request and layout.broker_answers or not is_request and layout.client_answers then
        local may_resend = dialect.has_resends and (is_request or dialect.has_sessions)
        local ip_id = may_resend and 0 or tracking.ip_id()
        asked, is_resend = acks.request(route.asked, m, frame, now, ip_id, dialect, may_resend)
    end
    if meaning == "publish" and is_request then
        on_publish(session, dialect, broker, m, frame, now, from, asked, is_resend)
    elseif is_resend and (meaning == "publish" or meaning == "deliver") then
        forwards.again(frame, asked.frame)
        broker.guess, broker.beside = false, false
    elseif meaning == "publish" or meaning == "deliver" then
        on_forward(session, dialect, broker, m, frame, now, to)
    elseif meaning == "subscribe" and m.filter then
        subscriptions.add(broker.subs, m.filter, subscriber(m, from), frame, is_resend)
    elseif meaning == "unsubscribe" and m.filter then
        subscriptions.remove(broker.subs, m.filter, subscriber(m, from))
    end
    if layout.names_topics and m.topic and m.number then
        bind_name(session, dialect, is_request and from or to, m.number, m.topic)
    end
end
end)(shared)

-- ==================== 54_garbage.lua ===============================================================================
;(function(...)
-- When Lua collects its garbage.
--
-- Each packet leaves small pieces behind, Wireshark's as well as ours. Lua collects them once the heap has doubled:
-- behind a million messages that is a hundred megabytes, more than any cache of a processor. Where what stays are few
-- tables, though long ones (one broker, many messages), a collection takes little, and is worth its time much sooner;
-- where it is many tables (thousands of clients) it is not. So it is measured how long one takes, each time the heap
-- has grown by half, and as much garbage is left to gather as makes that a microsecond a datagram.
local ts = ...
local floor, max, min, clock = math.floor, math.max, math.min, os.clock

local GARBAGE = 0.7 -- kilobytes that a datagram leaves
local WORTH = 1e-6 -- seconds of collecting a datagram
local LEAST, GROWTH = 2048, 1.5 -- kilobytes of garbage; times the heap, before it is measured again
local STEP = 10000 -- a collection in one go, not in small steps
local LOOK_AFTER = 4096 -- frames

local limit = 4 * LEAST

local function measure()
    local start = clock()
    collectgarbage("collect")
    local heap = collectgarbage("count")
    local spare = min(max(LEAST, (clock() - start) / WORTH * GARBAGE), heap)
    collectgarbage("setpause", 100 + floor(100 * spare / heap))
    collectgarbage("setstepmul", STEP)
    limit = GROWTH * heap + spare
end

-- To be called now and then: gives the frame at which to call it again.
function ts.collect_in_time(frame)
    if collectgarbage("count") > limit then
        measure()
    end
    return frame + LOOK_AFTER
end
end)(shared)

-- ==================== 56_story.lua =================================================================================
;(function(...)
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
end)(shared)

-- ==================== 58_json.lua ==================================================================================
;(function(...)
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
end)(shared)

-- ==================== 60_fields.lua ================================================================================
;(function(...)
-- The fields: the common ones, and each dialect's own as pubsub.<dialect>.<field>.
local ts = ...
if not rawget(_G, "Proto") then
    return -- outside of Wireshark there is only the decoding
end

local POWER = ts.numbers.POWER

local proto = Proto("pubsub", "Publish/Subscribe")
local fields = {}
ts.proto, ts.fields = proto, fields

local function define(key, make, name, ...)
    fields[key] = make("pubsub." .. key, name, ...)
end

define("dialect", ProtoField.string, "Dialect")
define("form", ProtoField.string, "Form")
define("message", ProtoField.string, "Message")
define("meaning", ProtoField.string, "Meaning")
define("topic", ProtoField.string, "Topic")
define("topic_name", ProtoField.string, "Topic name", base.NONE, "The name behind a topic number")
define("filter", ProtoField.string, "Filter")
define("retain", ProtoField.bool, "Retain")
define("payload", ProtoField.bytes, "Payload")
define("payload_text", ProtoField.string, "Payload as text")
define("padding", ProtoField.uint32, "Padding", base.DEC, nil, nil, "NULs after the message")
define("error", ProtoField.string, "Error")
define("error_offset", ProtoField.uint32, "Error offset", base.DEC)
define("stream", ProtoField.uint32, "Stream", base.DEC, nil, nil, "The number of the conversation")
define("exchange", ProtoField.framenum, "Exchange", base.NONE, frametype.NONE)
define("ack_in", ProtoField.framenum, "ACK in", base.NONE, frametype.RESPONSE)
define("ack_to", ProtoField.framenum, "ACK to", base.NONE, frametype.REQUEST)
define("ack_candidate", ProtoField.framenum, "Perhaps ACK to", base.NONE, frametype.REQUEST)
define("ack_time", ProtoField.relative_time, "Time to ACK")
define("ack_wait", ProtoField.relative_time, "Time to ACK, at most", "Of a request sent again: since its first send")
define("ack_quality", ProtoField.string, "Quality of the match")
define("resend_of", ProtoField.framenum, "Resend of", base.NONE, frametype.RETRANS_PREV)
define("copy_of", ProtoField.framenum, "Copy of", base.NONE, frametype.NONE)
define("forward_of", ProtoField.framenum, "Forward of", base.NONE, frametype.REQUEST)
define("forward_candidate", ProtoField.framenum, "Perhaps forward of", base.NONE, frametype.REQUEST)
define("forwarded_in", ProtoField.framenum, "Forwarded in", base.NONE, frametype.RESPONSE)
define("forward_time", ProtoField.relative_time, "Time from publish to forward")
define("due", ProtoField.uint32, "Due", base.DEC, nil, nil, "How many forwards the subscriptions ask for")
define("subscriber", ProtoField.string, "Subscriber", base.NONE, "Who has subscribed to this when it is published")
define("missing", ProtoField.string, "Not forwarded to")
define("fanout", ProtoField.uint32, "Fan-out", base.DEC, nil, nil, "How many forwards this publish has")
define("subscribed_in", ProtoField.framenum, "Subscribed in", base.NONE, frametype.NONE)

-- -- the dialects' own -----------------------------------------------------------------------------------------------

local BITS_OF = { "UINT8", "UINT16", "UINT24", "UINT32" }

-- What a step needs of a field: its type, and for bits in at most four bytes the mask.
local function shape_of(step)
    if step.kind == "text" then
        return { type = ftypes.STRING, sort = "text" }
    elseif not step.is_number then
        return { type = ftypes.BYTES, sort = "bytes" }
    elseif step.kind == "bits" and step.size <= 4 then
        local mask = 0
        for bit = step.shift, step.shift + step.bits - 1 do
            mask = mask + POWER[bit]
        end
        return { type = ftypes[BITS_OF[step.size]], sort = "number", mask = mask }
    end
    local long = (step.size or 0) > 4 and (step.kind ~= "digits" or step.size > 9)
    if step.kind == "int" then
        return { type = long and ftypes.INT64 or ftypes.INT32, sort = "number", signed = true, long = long }
    end
    return { type = long and ftypes.UINT64 or ftypes.UINT32, sort = "number", long = long }
end

-- Two shapes of one name, in two forms or messages: numbers of any size become one field of 64 bits.
local function merged(one, other)
    if one.type == other.type and one.mask == other.mask then
        return one
    end
    local signed, type64 = one.signed or other.signed, ftypes.UINT64
    if signed then
        type64 = ftypes.INT64
    end
    return { type = type64, sort = "number", signed = signed, long = true }
end

local function add_names(names, step, message)
    for value, name in pairs(step.names or {}) do
        if type(value) == "number" then
            names[value] = names[value] or name
        end
    end
    if step.guards and #step.guards <= 2 and step.is_number and not step.names then
        for _, value in ipairs(step.guards) do
            names[value] = names[value] or message
        end
    end
end

local function title_of(name)
    local words = name:gsub("_", " ")
    return words:sub(1, 1):upper() .. words:sub(2)
end

local function value_string(shape, names)
    if shape.sort ~= "number" or shape.signed or next(names) == nil then
        return nil
    end
    for value in pairs(names) do
        if value < 0 or value >= 2147483648 then
            return nil
        end
    end
    return names
end

local function each_step(dialect, visit)
    for _, form in ipairs(dialect.forms) do
        for _, layout in ipairs(form.layouts) do
            for _, step in ipairs(layout.steps) do
                visit(step, shape_of(step), layout)
            end
        end
    end
end

-- Names of fields that are signed in one place and long and unsigned in another: no type holds both.
local function split_names(dialect)
    local signed, long, both = {}, {}, {}
    each_step(dialect, function(step, shape)
        signed[step.name] = signed[step.name] or shape.signed
        long[step.name] = long[step.name] or (shape.long and not shape.signed)
        both[step.name] = signed[step.name] and long[step.name]
    end)
    return both
end

local function gather(dialect)
    local found, order, split = {}, {}, split_names(dialect)
    each_step(dialect, function(step, shape, layout)
        local sort = shape.signed and split[step.name] and "signed" or shape.sort
        local key = step.name .. "/" .. sort
        local entry = found[key]
        if not entry then
            entry = { name = step.name, shape = shape, sort = sort, names = {} }
            found[key], order[#order + 1] = entry, entry
        else
            entry.shape = merged(entry.shape, shape)
        end
        add_names(entry.names, step, layout.message)
        step.field_entry = entry
    end)
    return order
end

-- A dialect called like a common field, or `expert`: a name that no dialect can have keeps the two apart.
local function prefix_of(dialect)
    local is_taken = fields[dialect.name] or dialect.name == "expert"
    return "pubsub." .. dialect.name .. (is_taken and "-dialect" or "")
end

local function define_own(dialect)
    local taken, prefix = {}, prefix_of(dialect)
    dialect.own_field = ProtoField.none(prefix, "Fields of " .. dialect.name)
    fields["own " .. dialect.name] = dialect.own_field
    for _, entry in ipairs(gather(dialect)) do
        local shape, abbr = entry.shape, prefix .. "." .. entry.name
        if taken[abbr] then -- text in one form, a number in another
            abbr = abbr .. "." .. entry.sort
        end
        taken[abbr] = true
        entry.named = value_string(shape, entry.names)
        local display = shape.sort == "number" and base.DEC or base.NONE
        entry.field = ProtoField.new(title_of(entry.name), abbr, shape.type, entry.named, display, shape.mask)
        fields[dialect.name .. "." .. abbr] = entry.field
    end
end

for _, dialect in ipairs(ts.dialects) do
    define_own(dialect)
end
proto.fields = fields
end)(shared)

-- ==================== 62_expert.lua ================================================================================
;(function(...)
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
end)(shared)

-- ==================== 64_info.lua ==================================================================================
;(function(...)
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
end)(shared)

-- ==================== 66_tree.lua ==================================================================================
;(function(...)
-- The packet details: common fields, the dialect's own fields with their bytes, and what tracking found.
local ts = ...
if not ts.proto then
    return
end
local story = ts.story
local results, numbers, charsets, fields, experts = ts.results, ts.numbers, ts.charsets, ts.fields, ts.experts
local floor = math.floor

local display = {}
ts.display = display

local WORD = 4294967296

-- A value of up to 64 bits, a number or its digits, as Wireshark's own type.
local function wide(value, signed)
    local digits = numbers.text(value)
    local negative = digits:sub(1, 1) == "-"
    local high, low = 0, 0
    for digit in digits:gmatch("%d") do
        low = low * 10 + tonumber(digit)
        high = high * 10 + floor(low / WORD)
        low = low % WORD
    end
    if negative then
        low = WORD - low
        high = WORD - 1 - high
        if low == WORD then
            low, high = 0, (high + 1) % WORD
        end
    end
    return (signed and Int64 or UInt64).new(low, high)
end

local function add_step(tree, tvb, w, index)
    local step, value = w.layout.steps[index], w.values[index]
    local entry = step.field_entry
    local shape, first = entry.shape, w.firsts[index]
    local range = tvb:range(first, w.lasts[index] - first)
    if shape.sort == "text" then
        tree:add_packet_field(entry.field, range, ENC_UTF_8)
    elseif shape.sort == "bytes" or shape.mask then
        tree:add(entry.field, range)
    else
        local item = tree:add(entry.field, range, shape.long and wide(value, shape.signed) or value)
        local name = not entry.named and step.names and step.names[value]
        if name then
            item:append_text(" (" .. name .. ")")
        end
    end
end

local function range_of(tvb, w, index)
    local first = w.firsts[index]
    return tvb:range(first, w.lasts[index] - first)
end

-- A topic or filter: the bytes themselves where it is text, else the dialect's word for its number.
local function add_text(tree, tvb, w, field, index, text)
    if not text then
        return
    end
    local range = range_of(tvb, w, index)
    if w.layout.steps[index].is_number then
        tree:add(field, range, text)
    else
        tree:add_packet_field(field, range, ENC_UTF_8)
    end
end

local function add_payload(tree, tvb, w)
    if w.payload then
        local range = range_of(tvb, w, w.layout.payload)
        tree:add(fields.payload, range)
        if #w.payload > 0 and charsets.is_readable(w.payload) then
            tree:add_packet_field(fields.payload_text, range, ENC_UTF_8)
        end
    end
end

-- The payload to the dissector that the user named for this topic, or that of JSON if it is.
local function pass_on(tvb, w, pinfo, root)
    local dissector = w.payload and #w.payload > 0 and ts.payload_dissector(w.topic or "", w.payload)
    if dissector then
        dissector:call(range_of(tvb, w, w.layout.payload):tvb(), pinfo, root)
    end
end

local function add_frame(tree, field, frame)
    if frame and frame ~= 0 then
        tree:add(field, frame):set_generated()
    end
end

local function add_time(tree, field, seconds)
    if seconds then
        local sign = seconds < 0 and -1 or 1
        local nanoseconds = floor(sign * seconds * 1e9 + 0.5)
        local whole = floor(nanoseconds / 1e9)
        tree:add(field, NSTime.new(sign * whole, sign * (nanoseconds - whole * 1e9))):set_generated()
    end
end

local function add_ack(tree, frame, is_ack)
    local link = results.link[frame]
    for _, other in ipairs(is_ack and results.candidates[frame] or {}) do
        add_frame(tree, fields.ack_candidate, other)
    end
    if not link then
        return
    elseif is_ack and link < 0 then
        tree:add(fields.ack_quality, results.quality[frame]):set_generated()
    elseif is_ack then
        add_frame(tree, fields.ack_to, link)
        local quality = results.quality[frame] or "exact"
        local is_timed = quality == "exact" or quality == "anchored"
        tree:add(fields.ack_quality, quality):set_generated()
        add_time(tree, is_timed and fields.ack_time or fields.ack_wait, results.after[frame])
    else
        add_frame(tree, fields.ack_in, link)
    end
end

local MOST_SUBSCRIBERS = 1000 -- shown

-- Who has subscribed to a publish, since when, and which forwards came of it.
local function add_subscribers(tree, told)
    for place = 1, math.min(#told.subscribers, MOST_SUBSCRIBERS) do
        local one = told.subscribers[place]
        local branch = tree:add(fields.subscriber, one.endpoint):set_generated()
        for _, subscription in ipairs(one.frames) do
            add_frame(branch, fields.subscribed_in, subscription)
        end
        for _, forward in ipairs(one.forwards) do
            add_frame(branch, fields.forwarded_in, forward)
        end
        if one.missing > 0 then
            branch:add(fields.missing, one.endpoint):set_generated()
        end
    end
end

local function add_publish(tree, frame, left)
    local told = story.of(frame, left or 0)
    if told then
        tree:add(fields.due, told.due):set_generated()
        tree:add(fields.fanout, told.seen):set_generated()
        add_subscribers(tree, told)
    end
end

local function add_tracking(tree, frame, is_ack, later)
    for _, exchange in ipairs(story.exchanges(frame, is_ack)) do
        add_frame(tree, fields.exchange, exchange)
    end
    add_frame(tree, fields.copy_of, results.copy_of[frame])
    add_frame(tree, fields.resend_of, results.resend_of[frame])
    add_ack(tree, frame, is_ack)
    for _, other in ipairs(not is_ack and results.candidates[frame] or {}) do
        add_frame(tree, fields.forward_candidate, other)
    end
    add_frame(tree, fields.forward_of, results.forward_of(frame))
    add_time(tree, fields.forward_time, results.delay[frame])
    add_frame(tree, fields.subscribed_in, results.subscribed_in[frame])
    add_publish(tree, frame, later)
    if results.topic_name[frame] then
        tree:add(fields.topic_name, ts.shown(results.topic_name[frame])):set_generated()
    end
end

local function add_error(tree, tvb, w)
    if w.error then
        local size = w.error_offset < tvb:len() and 1 or 0
        local range = tvb:range(w.error_offset, size)
        tree:add(fields.error, range, w.error):set_generated()
        tree:add(fields.error_offset, range, w.error_offset):set_generated()
    end
end

-- Expert information alone, where nobody asks for a field of ours: it counts whether or not details are shown.
function display.warn(root, tvb, ids)
    local tree = root:add(ts.proto, tvb:range(0, tvb:len()))
    for place = 1, ids and #ids or 0 do
        local id = ids[place]
        if type(id) == "table" then
            tree:add_proto_expert_info(experts[id[1]], id[2])
        else
            tree:add_proto_expert_info(experts[id])
        end
    end
    return tree
end

-- All of it; `ids` are the experts that apply, `later` is as for them.
function display.show(root, tvb, pinfo, dialect, w, frame, ids, later)
    local tree = display.warn(root, tvb, ids)
    tree:append_text(" (" .. dialect.name .. "): " .. (w.message or w.error or ""))
    tree:add(fields.dialect, dialect.name):set_generated()
    tree:add(fields.form, w.form.name):set_generated()
    tree:add(fields.stream, ts.packet.pair(pinfo).stream):set_generated()
    if w.message then
        tree:add(fields.message, w.message):set_generated()
        tree:add(fields.meaning, w.meaning):set_generated()
    end
    local layout = w.layout
    add_text(tree, tvb, w, fields.topic, layout.topic, w.topic)
    add_text(tree, tvb, w, fields.filter, layout.filter, w.filter)
    if w.retain ~= nil then
        tree:add(fields.retain, range_of(tvb, w, layout.retain), w.retain)
    end
    add_payload(tree, tvb, w)
    local own = w.count > 0 and tree:add(dialect.own_field, tvb:range(0, w.stops[w.count]))
    for index = 1, w.count do
        add_step(own, tvb, w, index)
    end
    if w.padding > 0 then
        tree:add(fields.padding, tvb:range(tvb:len() - w.padding, w.padding), w.padding)
    end
    add_error(tree, tvb, w)
    add_tracking(tree, frame, w.meaning == "ack", later)
    pass_on(tvb, w, pinfo, root)
end
end)(shared)

-- ==================== 70_preferences.lua ===========================================================================
;(function(...)
-- Preferences and arguments: ports of each dialect, one dialect for everything, dissectors for payloads.
--
--     tshark -X lua_script:dissector.lua -X lua_script1:dialect=colon -X lua_script1:ports=4000,4100-4110
--     tshark -o pubsub.colon_ports:4000
local ts = ...
if not ts.proto then
    return
end
local proto, topics = ts.proto, ts.topics
local floor = math.floor

local settings = { by_port = {}, payloads = {} }
ts.settings = settings

local arguments = {}
for _, argument in ipairs(ts.arguments) do
    local key, value = tostring(argument):match("^(%w+)=(.*)$")
    if key then
        arguments[key] = value
    end
end
ts.options = arguments

local function default_ports(dialect)
    local list = {}
    for _, ports in pairs(dialect.ports) do
        for _, port in ipairs(ports) do
            list[#list + 1] = port
        end
    end
    table.sort(list)
    return table.concat(list, ",")
end

-- The name of its preference; Wireshark takes none that begins with "pubsub".
local function ports_preference(dialect)
    local name = dialect.name
    return name:find("^pubsub") and "ports_of_" .. name or name .. "_ports"
end

local choices = { { 1, "auto", 0 } }
for place, dialect in ipairs(ts.dialects) do
    choices[#choices + 1] = { place + 1, dialect.name, place }
end
proto.prefs.dialect =
    Pref.enum("Dialect", 0, "Decode all publish/subscribe traffic as this dialect", choices, false)
for _, dialect in ipairs(ts.dialects) do
    proto.prefs[ports_preference(dialect)] =
        Pref.range("UDP ports of " .. dialect.name, default_ports(dialect), dialect.title, 65535)
end
proto.prefs.heuristics = Pref.bool("Find the traffic on other ports", true, "Recognise dialects by their content")
proto.prefs.payloads = Pref.string(
    "Payload dissectors",
    "",
    "Which dissector reads the payloads of which topics, as pattern=dissector; pattern=dissector (home/*=json)"
)

proto.prefs.json = Pref.bool("Payloads that are JSON", true, "Show payloads that are JSON objects or arrays as JSON")

-- "1,3-5" as a list of { first, last }.
local function ranges_of(text)
    local ranges = {}
    for word in tostring(text):gmatch("[^,%s]+") do
        local first, last = word:match("^(%d+)%-(%d+)$")
        first, last = tonumber(first or word), tonumber(last or word)
        if first and last and first >= 1 and last <= 65535 and first <= last then
            ranges[#ranges + 1] = { floor(first), floor(last) }
        end
    end
    return ranges
end

local function claim(text, dialect)
    for _, range in ipairs(ranges_of(text)) do
        for port = range[1], range[2] do
            local list = settings.by_port[port] or {}
            settings.by_port[port] = list
            if dialect then
                list[#list + 1] = dialect
            end
        end
    end
end

local function read_payloads(text)
    settings.payloads = {}
    for pattern, name in text:gmatch("([^=;]+)=%s*([^=;%s]+)") do
        local found, dissector = pcall(Dissector.get, name)
        if found and dissector then
            table.insert(settings.payloads, { matches = topics.pattern(pattern), dissector = dissector })
        end
    end
end

local found_json, json = pcall(Dissector.get, "json")

-- The dissector that the user wants for the payloads of this topic, or that of JSON for what is JSON.
function ts.payload_dissector(topic, payload)
    for _, entry in ipairs(settings.payloads) do
        if entry.matches(topic) then
            return entry.dissector
        end
    end
    return found_json and settings.json and ts.is_json(payload) and json or nil
end

local udp_ports = DissectorTable.get("udp.port")
local registered = {}

local function register_ports()
    for port in pairs(registered) do
        if not settings.by_port[port] then
            udp_ports:remove(port, proto)
        end
    end
    for port in pairs(settings.by_port) do
        if not registered[port] then
            udp_ports:add(port, proto)
        end
    end
    registered = settings.by_port
end

-- Takes over what the preferences say now; ports that are no longer named go back to whom they belonged.
function settings.apply()
    settings.by_port = {}
    for _, dialect in ipairs(ts.dialects) do
        claim(proto.prefs[ports_preference(dialect)], dialect)
    end
    claim(arguments.ports or "", arguments.dialect and ts.by_name[arguments.dialect])
    settings.only = ts.by_name[arguments.dialect] or ts.dialects[proto.prefs.dialect]
    settings.heuristics, settings.json = proto.prefs.heuristics, proto.prefs.json
    read_payloads(proto.prefs.payloads)
    register_ports()
end

if arguments.dialect and not ts.by_name[arguments.dialect] then
    report_failure("dissector.lua: there is no dialect " .. arguments.dialect)
end
proto.prefs_changed = settings.apply
end)(shared)

-- ==================== 80_statistics.lua ============================================================================
;(function(...)
-- Statistics: topics, ACK timing, fan-out by filter, clients.
--
-- In Wireshark under Statistics > Publish-Subscribe. In tshark at the end of a run:
--     tshark -q -r capture.pcap -X lua_script:dissector.lua -X lua_script1:statistics=topics
-- with topics, acks, fanout or clients, or several of them with commas.
--
-- Every number is known once its packet is seen (an ACK knows its request, a forward its publish), so one pass will do.
local ts = ...
if not ts.proto then
    return
end
local results, shown = ts.results, ts.shown
local format = string.format

local statistics = { wanted = false }
ts.statistics = statistics

local tables

function statistics.reset()
    tables = { topics = {}, acks = {}, fanout = {}, clients = {}, filters = {}, asked = {}, resent = {} }
end

statistics.reset()

local function row_of(name, key, fresh)
    local row = tables[name][key]
    if not row then
        row = fresh
        tables[name][key] = row
    end
    return row
end

local function count(row, column, by)
    row[column] = (row[column] or 0) + (by or 1)
end

local function take_topic(m, frame)
    local row = row_of("topics", m.topic, { shown(m.topic), publishes = 0, forwards = 0, retained = 0, bytes = 0 })
    if results.forward_of(frame) then
        count(row, "forwards")
    else
        count(row, "publishes")
        count(row, "retained", m.retain and 1 or 0)
    end
    count(row, "bytes", #(m.payload or ""))
end

local function take_request(m, frame, source, target)
    local key = source .. ">" .. target .. ">" .. m.layout.message
    local fresh = { source, target, m.layout.message, requests = 0, acked = 0, resent = 0, times = {} }
    local row = row_of("acks", key, fresh)
    local first = results.resend_of[frame]
    if not first then
        count(row, "requests")
    elseif not tables.resent[first] then -- however often it is sent; which send was answered is unknown
        tables.resent[first], row.times[first] = true, nil
        count(row, "resent")
    end
    tables.asked[frame] = row
end

-- An ACK counts for the request that it answers; one more ACK to a resend does not make a second request acknowledged.
local function take_ack(frame)
    local time, quality = results.after[frame], results.quality[frame] or "exact"
    local row = time and tables.asked[math.abs(results.link[frame])]
    if not row or row.acked >= row.requests then
        return
    end
    count(row, "acked")
    if quality == "exact" or quality == "anchored" then
        row.times[results.link[frame]] = time
    end
end

-- A forward counts for the filter of the SUBSCRIBE that made it due.
local function take_forward(frame)
    local filter = tables.filters[results.subscribed_in[frame]] or "(no subscription seen)"
    count(row_of("fanout", filter, { shown(filter), forwards = 0, subscriptions = 0 }), "forwards")
end

-- Takes in one message; copies do not count.
function statistics.take(dialect, m, frame, source, target)
    if m.error or results.copy_of[frame] then
        return
    end
    local meaning = m.layout.meaning
    local client = row_of("clients", dialect.name .. source, { source, dialect.name, sent = 0, received = 0 })
    count(client, "sent")
    count(client, meaning)
    count(row_of("clients", dialect.name .. target, { target, dialect.name, sent = 0, received = 0 }), "received")
    if m.topic and (meaning == "publish" or meaning == "deliver") then
        take_topic(m, frame)
    end
    if meaning == "subscribe" and m.filter then
        tables.filters[frame] = m.filter
        count(row_of("fanout", m.filter, { shown(m.filter), forwards = 0, subscriptions = 0 }), "subscriptions")
    end
    if results.forward_of(frame) or results.unexpected[frame] then
        take_forward(frame)
    end
    if meaning == "ack" then
        take_ack(frame)
    elseif results.link[frame] or results.resend_of[frame] then
        take_request(m, frame, source, target)
    end
end

-- -- showing them ----------------------------------------------------------------------------------------------------

local function milliseconds(seconds)
    return seconds and format("%.3f", seconds * 1000) or "-"
end

-- The shortest, the mean and the longest of some times.
local function summary_of(times)
    local least, most, sum, timed = nil, nil, 0, 0
    for _, time in pairs(times) do
        least, most = math.min(least or time, time), math.max(most or time, time)
        sum, timed = sum + time, timed + 1
    end
    return milliseconds(least), milliseconds(timed > 0 and sum / timed), milliseconds(most)
end

local LAYOUTS = {
    topics = {
        "Topics: messages and bytes of payload",
        { "topic", "publishes", "forwards", "retained", "bytes" },
        function(row)
            return { row[1], row.publishes, row.forwards, row.retained, row.bytes }
        end,
    },
    acks = {
        "ACKs: requests and the time to their ACK in ms (exact and anchored matches)",
        { "client", "asked", "message", "requests", "acked", "resent", "min", "mean", "max" },
        function(row)
            local least, mean, most = summary_of(row.times)
            return { row[1], row[2], row[3], row.requests, row.acked, row.resent, least, mean, most }
        end,
    },
    fanout = {
        "Fan-out by filter",
        { "filter", "subscriptions", "forwards" },
        function(row)
            return { row[1], row.subscriptions, row.forwards }
        end,
    },
    clients = {
        "Clients",
        { "endpoint", "dialect", "sent", "received", "publishes", "subscribes", "acks" },
        function(row)
            return { row[1], row[2], row.sent, row.received, row.publish or 0, row.subscribe or 0, row.ack or 0 }
        end,
    },
}

-- One of the four tables as text, rows sorted, columns aligned.
function statistics.text(name)
    local title, head, cells_of = LAYOUTS[name][1], LAYOUTS[name][2], LAYOUTS[name][3]
    local rows = {}
    for _, row in pairs(tables[name]) do
        rows[#rows + 1] = cells_of(row)
    end
    table.sort(rows, function(one, other)
        return table.concat(one, "\1") < table.concat(other, "\1")
    end)
    table.insert(rows, 1, head)
    local widths = {}
    for _, row in ipairs(rows) do
        for place, cell in ipairs(row) do
            widths[place] = math.max(widths[place] or 0, #tostring(cell))
        end
    end
    local lines = { title }
    for _, row in ipairs(rows) do
        local cells = {}
        for place, cell in ipairs(row) do
            cells[place] = tostring(cell) .. (" "):rep(widths[place] - #tostring(cell))
        end
        lines[#lines + 1] = (table.concat(cells, "  "):gsub("%s+$", ""))
    end
    return table.concat(lines, "\n") .. "\n"
end

local function print_wanted(names)
    for name in names:gmatch("[^,%s]+") do
        io.stdout:write("\n", LAYOUTS[name] and statistics.text(name) or "there are no statistics of " .. name .. "\n")
    end
end

local function open_window(name)
    local window = TextWindow.new("Publish/Subscribe: " .. LAYOUTS[name][1])
    statistics.reset()
    statistics.wanted = true
    local tap = Listener.new("frame", "pubsub")
    function tap.draw()
        window:set(statistics.text(name))
    end
    function tap.reset()
        statistics.reset()
    end
    window:set_atclose(function()
        tap:remove()
        statistics.wanted = false
    end)
    retap_packets()
end

local names = ts.options.statistics
if names then
    statistics.wanted = true
    local tap = Listener.new("frame")
    function tap.draw()
        print_wanted(names)
    end
elseif gui_enabled() then
    for name, layout in pairs(LAYOUTS) do
        register_menu("Publish-Subscribe: " .. layout[1]:match("^[^:]+"), function()
            open_window(name)
        end, MENU_STAT_UNSORTED)
    end
end
end)(shared)

-- ==================== 84_packet.lua ================================================================================
;(function(...)
-- What Wireshark knows of a packet: its number, time, addresses and ports, asked for the quick way.
--
-- `pinfo.src_port` looks for the function behind that name each time, and makes new texts of the names on its way. The
-- functions stand in a table of the class: taken from there once, each takes half the time.
local ts = ...
if not ts.proto then
    return
end
local pair = ts.parties.pair
local floor, has_gui = math.floor, gui_enabled()

local packet = {}
ts.packet = packet

local first_offset -- of absolute to relative time: differs behind a time reference

function packet.reset()
    first_offset = nil
end

-- Numbers from Wireshark are floats in Lua 5.3 and later; 3.0 would be shown as such.
local tointeger = rawget(math, "tointeger")

local function part_of_class(example, part)
    local class = getmetatable(example)
    return type(class) == "table" and rawget(class, part) or nil
end

-- The function that gives this attribute of objects like this one.
local function getter(example, name)
    local getters = part_of_class(example, "__getters")
    return type(getters) == "table" and rawget(getters, name) or function(other)
        return other[name]
    end
end

packet.getter = getter

-- As the one above, for whole numbers.
local function whole(pinfo, name)
    local get = getter(pinfo, name)
    return tointeger and function(other)
        return tointeger(get(other))
    end or get
end

local function setter(columns)
    return part_of_class(columns, "__newindex") or function(other, name, text)
        other[name] = text
    end
end

-- Makes the functions, once there is a packet to ask.
function packet.learn(pinfo)
    packet.number, packet.visited = whole(pinfo, "number"), getter(pinfo, "visited")
    packet.is_quoted, packet.direction = getter(pinfo, "in_error_pkt"), getter(pinfo, "p2p_dir")
    local columns, set = getter(pinfo, "cols"), setter(pinfo.cols)

    function packet.show(other, protocol, info)
        local both = columns(other)
        set(both, "protocol", protocol)
        set(both, "info", info)
    end

    local source, target = getter(pinfo, "src"), getter(pinfo, "dst")
    local sport, dport = whole(pinfo, "src_port"), whole(pinfo, "dst_port")
    local text = part_of_class(pinfo.src, "__tostring") or tostring

    -- The two parties.
    function packet.pair(other)
        return pair(text(source(other)), sport(other), text(target(other)), dport(other))
    end

    local relative, absolute = getter(pinfo, "rel_ts"), getter(pinfo, "abs_ts")

    -- In Wireshark: seconds since the first frame, also behind a time reference. Relative times are exact to
    -- nanoseconds, absolute ones as doubles are not.
    local function time_behind_references(other)
        local seconds = relative(other)
        local offset = absolute(other) - seconds
        first_offset = first_offset or offset
        local moved = offset - first_offset
        if moved > 1e-5 or moved < -1e-5 then
            return seconds + floor(moved * 1e6 + 0.5) / 1e6
        end
        return seconds
    end
    packet.time = has_gui and time_behind_references or relative
end
end)(shared)

-- ==================== 86_choice.lua ================================================================================
;(function(...)
-- Which dialect a datagram is of, on a port that several use and on ports that none does.
local ts = ...
if not ts.proto then
    return
end
local settings, results, evidence, decode = ts.settings, ts.results, ts.evidence, ts.decode
local dialects, read = ts.dialects, ts.messages.read

local choice = {}
ts.choice = choice

-- The dialect that decodes it without error and says most about it; how well the ports suit goes before all.
local function best_of(candidates, data, length, from, to)
    local best, best_fit, most = nil, -1, 0
    for _, dialect in ipairs(candidates) do
        local w = decode(dialect, data, length)
        if not w.error then
            local fit, bits = evidence.of_ports(dialect, from.port, to.port), evidence.of(w)
            if fit > best_fit or (fit == best_fit and bits > most) then
                best, best_fit, most = dialect, fit, bits
            end
        end
    end
    return best, most
end

local function best_by_ports(candidates, from, to)
    local best, most = candidates[1], -1
    for _, dialect in ipairs(candidates) do
        local fit = evidence.of_ports(dialect, from.port, to.port)
        if fit > most then
            best, most = dialect, fit
        end
    end
    return best
end

local function includes(list, dialect)
    for _, other in ipairs(list) do
        if other == dialect then
            return true
        end
    end
    return false
end

-- All dialects that claim one of the two ports.
local function by_port(from, to)
    local one, other = settings.by_port[to.port], settings.by_port[from.port]
    if not other or not one or one == other then
        return one or other or dialects
    end
    local both = {}
    for _, list in ipairs({ one, other }) do
        for _, dialect in ipairs(list) do
            if not includes(both, dialect) then
                both[#both + 1] = dialect
            end
        end
    end
    return both
end

-- The one known for an endpoint does not decode it, or none is known: the one with most evidence.
local function choose(data, length, from, to, known)
    local candidates = by_port(from, to)
    if not candidates[1] then
        candidates = dialects
    end
    if not candidates[2] then
        return candidates[1]
    end
    local dialect = best_of(candidates, data, length, from, to)
    if dialect then
        to.dialect, from.dialect = to.dialect or dialect, from.dialect or dialect
    end
    return dialect or known or best_by_ports(candidates, from, to)
end

-- The dialect of a frame, and the message in it: chosen once, the same on later passes.
function choice.by_ports(data, length, frame, ends)
    local place = results.dialect[frame]
    local dialect = place and dialects[place]
    if not dialect then
        local from, to = ends.from, ends.to
        dialect = to.dialect or from.dialect
        if dialect then
            local m = read(dialect, data, length)
            if not m.error then
                results.dialect[frame] = dialect.place
                return dialect, m
            end
        end
        dialect = choose(data, length, from, to, dialect)
        results.dialect[frame] = dialect.place
    end
    return dialect, read(dialect, data, length)
end

-- On other ports: only what is sure, or what decodes at an endpoint that was sure before; else nil.
function choice.by_content(data, length, ends)
    local from, to = ends.from, ends.to
    local known = to.dialect or from.dialect
    if not known or decode(known, data, length).error then
        local bits
        known, bits = best_of(settings.only and { settings.only } or dialects, data, length, from, to)
        if not known or bits < evidence.ENOUGH then
            return nil
        end
    end
    from.dialect, to.dialect = known, known
    return known
end
end)(shared)

-- ==================== 88_places.lua ================================================================================
;(function(...)
-- Where a frame was captured, and which it is a copy of.
--
-- These fields need a tree. The one first pass that has none is that of `tshark -2` without a filter, where only the
-- direction is known.
local ts = ...
if not ts.proto then
    return
end
local copies, packet, name_of = ts.copies, ts.packet, ts.parties.name

local places = {}
ts.places = places

-- Tracking is what costs time: `-X lua_script1:tracking=off` does without, for captures of many millions.
ts.is_tracking = ts.options.tracking ~= "off"

local INTERFACES = 4294967296 -- and more there are not
local NONE = -1

local function field(name)
    return ts.is_tracking and Field.new(name) or nil -- one field asked for makes Wireshark build all trees
end

local packet_type, interface_index = field("sll.pkttype"), field("sll.ifindex")
local interface_id = field("frame.interface_id")
local ip_id, fragment_id, ipv6_length = field("ip.id"), field("ipv6.fraghdr.ident"), field("ipv6.plen")

local has_fields -- on the first pass: are there any to ask for?
local has_places -- can the file hold copies? Only cooked captures and files with interfaces can

local function value_of(info) -- until `look` knows a quicker one
    return info.value
end

function places.reset()
    has_fields, has_places = nil, nil
end

local function look()
    local place = packet_type() or interface_id()
    has_fields = (place or ip_id() or ipv6_length()) ~= nil
    has_places = place ~= nil or not has_fields
    value_of = place and packet.getter(place, "value") or value_of
end

local function last_of(first, second, ...)
    if second then -- a tunnel has one for each packet inside the other
        return last_of(second, ...)
    end
    return first and value_of(first)
end

local function place_of(pinfo)
    if not has_fields then
        return packet.direction(pinfo)
    end
    local kind = packet_type()
    local index = kind and interface_index() or interface_id()
    return (kind and value_of(kind) or NONE) * INTERFACES + (index and value_of(index) or NONE)
end

-- The frame of which this one is a copy, or nil.
function places.copy_of(data, frame, now, pinfo, ends)
    if has_places == nil then
        look()
    end
    if not has_places then
        return nil
    end
    local id = last_of(ip_id()) or last_of(fragment_id()) or false
    return copies.copy_of(name_of(ends), data, frame, now, place_of(pinfo), id)
end

local comment = Field.new("frame.comment")

local function add_findings(ids, first, ...)
    if first then
        local found = ts.finding_in(tostring(first.value))
        ids[#ids + 1] = found
        return add_findings(ids, ...)
    end
    return ids
end

-- The expert information of the packet at hand, with what its comments tell of findings.
function places.with_findings(ids)
    local first = comment()
    return first and add_findings(ids or {}, comment()) or ids
end

-- The IP id of the packet at hand, 0 where there is none.
function ts.tracking.ip_id()
    if has_places == nil then
        look()
    end
    return has_fields and (last_of(ip_id()) or last_of(fragment_id())) or 0
end
end)(shared)

-- ==================== 90_register.lua ==============================================================================
;(function(...)
-- Registration: the dissectors by port, by Decode As and by heuristics, and what they do with a datagram.
local ts = ...
if not ts.proto then
    return
end
local proto, settings, results, tracking, statistics = ts.proto, ts.settings, ts.results, ts.tracking, ts.statistics
local decode, read, display, info, experts_of = ts.decode, ts.messages.read, ts.display, ts.info, ts.experts_of
local packet, places, choice, is_tracking = ts.packet, ts.places, ts.choice, ts.is_tracking
local follow, copy_of, collect_in_time, has_gui = tracking.message, places.copy_of, ts.collect_in_time, gui_enabled()
local with_findings, story = places.with_findings, ts.story
local raw, reported_len, by_ports = Tvb.raw, Tvb.reported_len, choice.by_ports

local next_look = 0 -- at the garbage: a frame
local pubsub -- the dissector of `proto`, known only once everything is registered
local is_shown -- on a first pass without windows: does anybody ask for fields of ours? The same for all frames
local number_of, is_visited, is_quoted, time_of, pair_of, show_line -- of a packet, see `learn`

function proto.init()
    is_shown, next_look = nil, 0
    packet.reset()
    places.reset()
    tracking.reset()
    statistics.reset()
    story.reset()
end

local function learn(pinfo)
    packet.learn(pinfo)
    number_of, is_visited, is_quoted = packet.number, packet.visited, packet.is_quoted
    time_of, pair_of, show_line = packet.time, packet.pair, packet.show
end

local function track(dialect, m, data, frame, pinfo, ends)
    if is_quoted(pinfo) then
        return -- inside an ICMP error: not a datagram
    end
    local now = time_of(pinfo)
    local copy = copy_of(data, frame, now, pinfo, ends)
    if copy then
        results.mark("copy_of", frame, copy)
    elseif not m.error then
        follow(dialect, m, frame, now, ends)
    end
end

-- Are there fields of ours to make? Asking takes its time, and on a first pass of tshark the answer is always the same.
local function is_wanted(root, visited)
    if has_gui or visited then
        return root:referenced(pubsub)
    elseif is_shown == nil then
        is_shown = root:referenced(pubsub)
    end
    return is_shown
end

local function dissect(tvb, pinfo, root, wanted)
    if not number_of then
        learn(pinfo)
    end
    local length = reported_len(tvb)
    local data = length > 0 and raw(tvb) or ""
    local frame, visited = number_of(pinfo), is_visited(pinfo)
    if frame >= next_look then
        next_look = collect_in_time(frame)
    end
    local is_tracked, dialect = is_tracking and not visited, wanted or settings.only
    local ends = (is_tracked or not dialect) and pair_of(pinfo) -- writing addresses as text takes its time
    local m
    if dialect then
        m = read(dialect, data, length)
    else
        dialect, m = by_ports(data, length, frame, ends)
    end
    if is_tracked then
        track(dialect, m, data, frame, pinfo, ends)
    end
    local later = visited and tracking.left(time_of(pinfo))
    local line, is_odd = info(m, frame, later)
    show_line(pinfo, dialect.name, line)
    if statistics.wanted then
        ends = ends or pair_of(pinfo)
        statistics.take(dialect, m, frame, ends.from.endpoint, ends.to.endpoint)
    end
    local ids = with_findings((is_odd or visited) and experts_of(m, frame, later) or nil)
    if is_wanted(root, visited) then
        display.show(root, tvb, pinfo, dialect, decode(dialect, data, length), frame, ids, later)
    elseif ids then
        display.warn(root, tvb, ids)
    end
    return #data
end

proto.dissector = dissect

pubsub = Dissector.get("pubsub")

-- For Decode As and `-d udp.port==4000,pubsub_colon`: one more name for each dialect.
local udp_ports = DissectorTable.get("udp.port")
for _, dialect in ipairs(ts.dialects) do
    local alone = Proto("pubsub_" .. dialect.name, "Publish/Subscribe: " .. dialect.name)
    function alone.dissector(tvb, pinfo, root)
        return dissect(tvb, pinfo, root, dialect)
    end
    udp_ports:add_for_decode_as(alone)
end
udp_ports:add_for_decode_as(proto)

-- On other ports: what was not recognised at first is not recognised later.
proto:register_heuristic("udp", function(tvb, pinfo, root)
    if tvb:len() == 0 or not settings.heuristics then
        return false
    elseif not number_of then
        learn(pinfo)
    end
    local frame = number_of(pinfo)
    local dialect = ts.dialects[results.dialect[frame]]
    if not dialect then
        dialect = not is_visited(pinfo) and choice.by_content(raw(tvb), reported_len(tvb), pair_of(pinfo))
        if not dialect then
            return false
        end
        results.dialect[frame] = dialect.place
    end
    dissect(tvb, pinfo, root, dialect)
    return true
end)

settings.apply()
end)(shared)

return shared
