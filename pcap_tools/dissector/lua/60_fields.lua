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
