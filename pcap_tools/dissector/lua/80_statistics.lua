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
