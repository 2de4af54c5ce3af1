-- Makes the generated tables ready: readers as closures, sets instead of lists, layouts by first byte.
local ts = ...
local walk, charsets, remember = ts.walk, ts.charsets, ts.remember

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
    if step.first_bad and (index == layout.topic or index == layout.filter) then
        step.first_bad = remember(step.first_bad)
    end
    step.may_open = step.span_length ~= nil
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
                layout.may_be_short = layout.may_be_short or step.optional or step.or_end
            end
        end
        form.by_first_byte = by_first_byte(form)
    end
end
