-- How surely is a datagram of a dialect? The evidence in bits: random bytes would decode so one time in 2^bits.
--
-- A one-byte ACK has some 5 bits, `home/room:20` behind a type and a retain byte more than 30. Used to claim traffic on
-- unknown ports, and to choose between dialects that share a port. What each step proves by itself, whatever its value,
-- stands in the tables: `step_bits` of pcap_tools/codec/detect.py.
local ts = ...
local find, floor, log, min = string.find, math.floor, math.log, math.min

local evidence = { ENOUGH = 24 }
ts.evidence = evidence

local PRINTABLE_BITS = 1.4 -- log2(256 / 96) a character, for at most this many of them:
local MOST_CHARACTERS = 32

local function log2(value)
    return log(value) / log(2)
end

-- The bits for a decoded datagram; 0 if it has an error, or a text that nobody could read. Readable bytes are text.
function evidence.of(w)
    if w.error or not w.selected then
        return 0
    end
    local bits = -log2(#w.form.layouts)
    for index = 1, w.count do
        local step = w.layout.steps[index]
        bits = bits + (step.evidence or 0)
        if (step.kind == "text" or step.kind == "bytes") and not step.guards then
            local value = w.values[index]
            if not find(value, "[\0-\8\11\12\14-\31\127]") then
                bits = bits + PRINTABLE_BITS * min(#value, MOST_CHARACTERS)
            elseif step.kind == "text" then
                return 0
            end
        end
    end
    return floor(bits)
end

-- How well the ports suit a dialect: 2 if one end is a broker's and the other a client's, 1 if only the broker's is
-- known, else 0. Two dialects that share ports seldom share both ends.
function evidence.of_ports(dialect, sport, dport)
    local brokers, clients = dialect.broker_ports, dialect.client_ports
    if (brokers[dport] and clients[sport]) or (brokers[sport] and clients[dport]) then
        return 2
    end
    return brokers[dport] ~= brokers[sport] and 1 or 0
end
