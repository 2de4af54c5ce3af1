-- Which dialect a datagram is of, on a port that several use and on ports that none does.
local ts = ...
if not ts.proto then
    return
end
local settings, results, evidence, decode = ts.settings, ts.results, ts.evidence, ts.decode
local dialects, read = ts.dialects, ts.messages.read

local choice = {}
ts.choice = choice

-- The dialect that decodes it without error and says most about it; how well the ports suit goes before all.
local function best_of(candidates, data, length, from, to)
    local best, best_fit, most = nil, -1, 0
    for _, dialect in ipairs(candidates) do
        local w = decode(dialect, data, length)
        if not w.error then
            local fit, bits = evidence.of_ports(dialect, from.port, to.port), evidence.of(w)
            if fit > best_fit or (fit == best_fit and bits > most) then
                best, best_fit, most = dialect, fit, bits
            end
        end
    end
    return best, most
end

local function best_by_ports(candidates, from, to)
    local best, most = candidates[1], -1
    for _, dialect in ipairs(candidates) do
        local fit = evidence.of_ports(dialect, from.port, to.port)
        if fit > most then
            best, most = dialect, fit
        end
    end
    return best
end

local function includes(list, dialect)
    for _, other in ipairs(list) do
        if other == dialect then
            return true
        end
    end
    return false
end

-- All dialects that claim one of the two ports.
local function by_port(from, to)
    local one, other = settings.by_port[to.port], settings.by_port[from.port]
    if not other or not one or one == other then
        return one or other or dialects
    end
    local both = {}
    for _, list in ipairs({ one, other }) do
        for _, dialect in ipairs(list) do
            if not includes(both, dialect) then
                both[#both + 1] = dialect
            end
        end
    end
    return both
end

-- The one known for an endpoint does not decode it, or none is known: the one with most evidence.
local function choose(data, length, from, to, known)
    local candidates = by_port(from, to)
    if not candidates[1] then
        candidates = dialects
    end
    if not candidates[2] then
        return candidates[1]
    end
    local dialect = best_of(candidates, data, length, from, to)
    if dialect then
        to.dialect, from.dialect = to.dialect or dialect, from.dialect or dialect
    end
    return dialect or known or best_by_ports(candidates, from, to)
end

-- The dialect of a frame, and the message in it: chosen once, the same on later passes.
function choice.by_ports(data, length, frame, ends)
    local place = results.dialect[frame]
    local dialect = place and dialects[place]
    if not dialect then
        local from, to = ends.from, ends.to
        dialect = to.dialect or from.dialect
        if dialect then
            local m = read(dialect, data, length)
            if not m.error then
                results.dialect[frame] = dialect.place
                return dialect, m
            end
        end
        dialect = choose(data, length, from, to, dialect)
        results.dialect[frame] = dialect.place
    end
    return dialect, read(dialect, data, length)
end

-- On other ports: only what is sure, or what decodes at an endpoint that was sure before; else nil.
function choice.by_content(data, length, ends)
    local from, to = ends.from, ends.to
    local known = to.dialect or from.dialect
    if not known or decode(known, data, length).error then
        local bits
        known, bits = best_of(settings.only and { settings.only } or dialects, data, length, from, to)
        if not known or bits < evidence.ENOUGH then
            return nil
        end
    end
    from.dialect, to.dialect = known, known
    return known
end
