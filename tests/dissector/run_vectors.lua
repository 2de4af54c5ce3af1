-- Decodes datagrams with dissector.lua outside of Wireshark: lua5.4 run_vectors.lua dissector.lua < lines
--
-- A line in: the dialect's name, the datagram in hex ("-" if empty), its true length. A line out, all text in hex and
-- "-" for nothing: form, message, meaning, topic, filter, payload, retain, padding, error, error offset; for each field
-- its name, `n` or `b`, its value (a number in decimal, bytes in hex) and its range.
local ts = dofile(arg[1])

local function hex(text)
    if not text then
        return "-"
    end
    return "x" .. text:gsub(".", function(char)
        return string.format("%02x", char:byte())
    end)
end

local function bytes(digits)
    return digits == "-" and "" or (digits:gsub("%x%x", function(pair)
        return string.char(tonumber(pair, 16))
    end))
end

for line in io.lines() do
    local name, digits, length = line:match("^(%S+) (%S+) (%S+)$")
    local w = ts.decode(ts.by_name[name], bytes(digits), tonumber(length))
    local out = { w.form.name, w.message or "-", w.meaning or "-", hex(w.topic), hex(w.filter), hex(w.payload) }
    out[#out + 1] = w.retain == nil and "-" or tostring(w.retain)
    out[#out + 1] = ts.numbers.text(w.padding)
    out[#out + 1] = w.error or "-"
    out[#out + 1] = w.error_offset and ts.numbers.text(w.error_offset) or "-"
    for index = 1, w.count do
        local step, value = w.layout.steps[index], w.values[index]
        out[#out + 1] = step.name
        out[#out + 1] = step.is_number and "n" or "b"
        out[#out + 1] = step.is_number and ts.numbers.text(value) or hex(value)
        out[#out + 1] = ts.numbers.text(w.starts[index]) .. "-" .. ts.numbers.text(w.stops[index])
    end
    print(table.concat(out, " "))
end
