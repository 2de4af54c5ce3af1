-- Does a filter match a topic? By the dialect's wildcards, without regular expressions, in bounded time.
--
-- any-run      any characters, across levels, at any place
-- one-level    exactly one level
-- rest-levels  this and all deeper levels, and none; the last level of the filter
-- any-levels   any number of levels, and none
-- all          as the whole filter: every topic
local ts = ...
local find, sub, gsub, lower = string.find, string.sub, string.gsub, string.lower

local topics = {}
ts.topics = topics

local function split(text, separator)
    local parts, from = {}, 1
    if not separator or separator == "" then
        return { text }
    end
    while true do
        local first, last = find(text, separator, from, true)
        if not first then
            parts[#parts + 1] = sub(text, from)
            return parts
        end
        parts[#parts + 1] = sub(text, from, first - 1)
        from = last + 1
    end
end

-- `pieces` are the literal parts between any-run marks. Taking each at its first place is right: no backtracking.
local function matches_pieces(pieces, text)
    local count = #pieces
    local head = pieces[1]
    if count == 1 then
        return text == head
    end
    if sub(text, 1, #head) ~= head then
        return false
    end
    local at = #head + 1
    for index = 2, count - 1 do
        local _, last = find(text, pieces[index], at, true)
        if not last then
            return false
        end
        at = last + 1
    end
    local tail = pieces[count]
    return #text - #tail + 1 >= at and sub(text, #text - #tail + 1) == tail
end

-- The levels of a filter against those of a topic. Only the last any-levels seen has to be tried again.
local function matches_levels(wanted, levels, spans)
    local f, t, retry_f, retry_t = 1, 1, nil, nil
    while t <= #levels do
        local level = wanted[f]
        local span = level and spans[level]
        if span == "any-levels" then
            retry_f, retry_t, f = f, t, f + 1
        elseif span == "rest-levels" then
            return true
        elseif level and (span == "one-level" or level == levels[t]) then
            f, t = f + 1, t + 1
        elseif retry_f then
            f, retry_t = retry_f + 1, retry_t + 1
            t = retry_t
        else
            return false
        end
    end
    while wanted[f] and (spans[wanted[f]] == "any-levels" or spans[wanted[f]] == "rest-levels") do
        f = f + 1
    end
    return wanted[f] == nil
end

local function mark_of(spans, wanted)
    for mark, span in pairs(spans) do
        if span == wanted then
            return mark
        end
    end
    return nil
end

-- A function that says whether a topic matches this filter.
function topics.matcher(rules, filter)
    local spans, fold = rules.wildcards or {}, not rules.case_sensitive
    if spans[filter] == "all" then
        return function()
            return true
        end
    end
    filter = fold and lower(filter) or filter
    local any_run = mark_of(spans, "any-run")
    if any_run then
        local pieces = split(filter, any_run)
        return function(topic)
            return matches_pieces(pieces, fold and lower(topic) or topic)
        end
    end
    local wanted = split(filter, rules.separator)
    return function(topic)
        return matches_levels(wanted, split(fold and lower(topic) or topic, rules.separator), spans)
    end
end

-- Does a published topic hold a wildcard? A mark for levels counts only as a whole level.
function topics.has_wildcard(rules, topic)
    for mark, span in pairs(rules.wildcards or {}) do
        if span == "any-run" then
            if find(topic, mark, 1, true) then
                return true
            end
        elseif span == "all" then
            if topic == mark then
                return true
            end
        else
            for _, level in ipairs(split(topic, rules.separator)) do
                if level == mark then
                    return true
                end
            end
        end
    end
    return false
end

-- The topic under which a publish is passed on.
function topics.without(topic, word)
    local first, last = find(topic, word, 1, true)
    if not first then
        return topic
    end
    return sub(topic, 1, first - 1) .. sub(topic, last + 1)
end

-- A pattern with `*` of a preference, as the user types it.
function topics.pattern(text)
    local trimmed = gsub(text, "^%s*(.-)%s*$", "%1")
    return topics.matcher({ wildcards = { ["*"] = "any-run" }, case_sensitive = true }, trimmed)
end
