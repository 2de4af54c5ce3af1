local ts = ...
local statistics = {}
ts.statistics = statistics
function statistics.reset() end
function statistics.take() end
