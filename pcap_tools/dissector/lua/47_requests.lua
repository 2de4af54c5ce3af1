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
