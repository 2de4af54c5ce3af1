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
