-- The requests of one party to another that wait for an ACK, from the oldest to the newest.
--
-- queue[first] to queue[last] hold them, and between them some that are done; no more of these than of the others, so
-- that looking through a queue takes as long as it is full, whatever it has seen.
local ts = ...

local queues = {}
ts.queues = queues

local MOST = 512 -- waiting; then the oldest is given up
local FEW = 16 -- these are looked through, of more it is known by a table where each one is
local SLACK = 4

function queues.new()
    return { first = 1, last = 0, size = 0, same = false, answered = false }
end

local function key_of(m)
    return m.layout.message .. "\0" .. m.identity
end

local function is_same(request, m)
    local other = request.m
    return not request.done and other.identity == m.identity and other.layout.message == m.layout.message
end

-- The waiting request of which this message is a resend, or nil.
function queues.find(queue, m)
    if queue.same then
        return queue.same[key_of(m)]
    end
    for place = queue.last, queue.first, -1 do
        if is_same(queue[place], m) then
            return queue[place]
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
