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
