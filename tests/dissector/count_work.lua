-- What tracking costs, in instructions of Lua and in memory: lua5.4 count_work.lua dissector.lua traffic messages
--
-- Prints how many hundreds of instructions the second half of the messages took beside the first half, and how many
-- bytes each message left behind.
local ts = dofile(arg[1])
local traffic, count = arg[2], tonumber(arg[3])

local steps, frame = 0, 0
local LONG_TEXT = string.rep("x", 400)
local BROKER = "10.0.0.1"

local function send(dialect, data, source, sport, target, dport)
    frame = frame + 1
    local m = ts.messages.read(dialect, data, #data)
    assert(not m.error, m.error)
    ts.tracking.message(dialect, m, frame, frame * 0.001, ts.parties.pair(source, sport, target, dport))
    ts.info(m, frame, false)
end

local function mqttsn(number, is_answered)
    local id = string.char(math.floor(number / 256) % 256, number % 256)
    local dialect, text = ts.by_name.mqttsn, string.format("%08d", number)
    send(dialect, "\15\12\32\0\5" .. id .. text, "10.0.0.2", 4000, BROKER, 1883)
    if is_answered then
        send(dialect, "\7\13\0\5" .. id .. "\0", BROKER, 1883, "10.0.0.2", 4000)
    end
end

local function colon(number, host, is_answered)
    local dialect = ts.by_name.colon
    send(dialect, "\1\0t:" .. number .. LONG_TEXT, host, 50000, BROKER, 50000)
    if is_answered then
        send(dialect, "\2", BROKER, 50000, host, 50000)
    end
end

local TRAFFIC = {
    answered = function(number)
        colon(number, "10.0.0.2", true)
    end,
    never_answered = function(number)
        colon(number, "10.0.0.2", false)
    end,
    one_lost_ack = function(number)
        mqttsn(number, number > 1)
    end,
    a_few_lost_acks = function(number)
        mqttsn(number, number > 40)
    end,
    many_hosts = function(number)
        colon(number, "10.1.0." .. number % 1000, true)
    end,
}

local function play(first, last)
    steps = 0
    debug.sethook(function()
        steps = steps + 1
    end, "", 100)
    for number = first, last do
        TRAFFIC[traffic](number)
    end
    debug.sethook()
    collectgarbage("collect")
    collectgarbage("collect")
    return steps, collectgarbage("count") * 1024
end

play(1, 1000) -- whatever is made once
local first_steps, before = play(1001, 1000 + count)
local second_steps, after = play(1001 + count, 1000 + 2 * count)
print(second_steps / first_steps, (after - before) / count)
