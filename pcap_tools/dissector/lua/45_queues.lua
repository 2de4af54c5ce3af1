-- The requests of one party to another: those that wait for an ACK, from the oldest to the newest, and the last
-- answered.
--
-- queue[first] to queue[last] hold the waiting ones, and between them some that are done; no more of these than of
-- the others, so that looking through a queue takes as long as it is full, whatever it has seen.
local ts = ...

local queues = {}
ts.queues = queues

local MOST = 512 -- waiting; then the oldest is given up
local FEW = 16 -- these are looked through, of more it is known by a table where each one is
local PAST = 4 -- answered lately
local SLACK = 4
queues.PAST = PAST

function queues.new()
    return {
        first = 1,
        last = 0,
        size = 0,
        same = false,
        latest = false, -- the request sent last
        usual = false, -- seconds from a request to its ACK
        least = false, -- and the shortest of these times
        past = false, -- those answered lately, as a ring
        answers = 0,
    }
end

local function key_of(m)
    return m.layout.message .. "\0" .. m.identity
end

local function is_same(request, m)
    local other = request.m
    return other.identity == m.identity and other.layout.message == m.layout.message
end

local function find_waiting(queue, m)
    if queue.same then
        return queue.same[key_of(m)]
    end
    for place = queue.last, queue.first, -1 do
        local request = queue[place]
        if not request.done and is_same(request, m) then
            return request
        end
    end
    return nil
end

-- The last request that was the same as this message, or nil: one that waits, or was answered lately.
function queues.find(queue, m)
    local found = queue.size > 0 and find_waiting(queue, m)
    if found then
        return found
    end
    for age = 0, PAST - 1 do
        local request = queues.answered(queue, age)
        if not request then
            return nil
        elseif is_same(request, m) then
            return request
        end
    end
    return nil
end

local function note_all(queue)
    local same = {}
    for place = queue.first, queue.last do
        local request = queue[place]
        if not request.done then
            same[key_of(request.m)] = request
        end
    end
    queue.same = same
end

function queues.add(queue, request)
    local last, size = queue.last + 1, queue.size + 1
    queue[last], queue.last, queue.size = request, last, size
    queue.latest = request
    if queue.same then
        queue.same[key_of(request.m)] = request
    elseif size > FEW then
        note_all(queue)
    end
    if size > MOST then
        queues.drop(queue, queue[queue.first])
    end
end

-- All to the front.
local function close_ranks(queue)
    local kept = 0
    for place = queue.first, queue.last do
        local request = queue[place]
        if not request.done then
            kept = kept + 1
            queue[kept] = request
        end
    end
    for place = kept + 1, queue.last do
        queue[place] = false
    end
    queue.first, queue.last = 1, kept
end

-- It waits no more.
function queues.drop(queue, request)
    local first, size, same = queue.first, queue.size - 1, queue.same
    request.done, queue.size = true, size
    if same then
        local key = key_of(request.m)
        if same[key] == request then
            same[key] = nil
        end
        queue.same = size > 0 and same
    end
    if queue[first] == request then
        queue[first], first = false, first + 1
        queue.first = first
    end
    if queue.last > 2 * size + SLACK or size == 0 then
        close_ranks(queue)
    end
end

-- It waits again, as the oldest.
function queues.restore(queue, request)
    if queue.first == 1 then
        for place = queue.last, 1, -1 do
            queue[place + 1] = queue[place]
        end
        queue.first, queue.last = 2, queue.last + 1
    end
    local first = queue.first - 1
    queue[first], queue.first, queue.size = request, first, queue.size + 1
    request.done = false
    if queue.same then
        queue.same[key_of(request.m)] = request
    end
end

-- It was answered, and waits no more.
function queues.answer(queue, request)
    local past, answers = queue.past, queue.answers + 1
    if not past then
        past = {}
        queue.past = past
    end
    past[answers % PAST + 1], queue.answers = request, answers
    queues.drop(queue, request)
end

-- The last answer was to this one.
function queues.correct_answer(queue, request)
    queue.past[queue.answers % PAST + 1] = request
end

-- The requests answered lately, from the newest to the oldest: `age` counts from 0; nil when there are no more.
function queues.answered(queue, age)
    local answers = queue.answers - age
    return answers > 0 and age < PAST and queue.past[answers % PAST + 1] or nil
end
