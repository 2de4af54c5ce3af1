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
