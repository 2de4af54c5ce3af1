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
