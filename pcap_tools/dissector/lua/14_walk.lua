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
