-- Whole numbers of up to 64 bits, exact in every Lua.
--
-- Lua 5.2 has only doubles, so a value of 10^15 and more is kept as a string of decimal digits. Both kinds can be table
-- keys, and `text` writes both without a fraction or an exponent.
local ts = ...
local byte, format, reverse, floor = string.byte, string.format, string.reverse, math.floor

local numbers = {}
ts.numbers = numbers

local WORD = 4294967296
local POWER = { [0] = 1 } -- integers in Lua 5.3 and later, where 2^n would be a float
for bit = 1, 48 do
    POWER[bit] = POWER[bit - 1] * 2
end
numbers.POWER = POWER

-- The decimal digits of high * 2^32 + low, by long division of 16-bit limbs.
local function decimal(high, low)
    local limbs = { floor(high / 65536), high % 65536, floor(low / 65536), low % 65536 }
    local digits = ""
    while limbs[1] + limbs[2] + limbs[3] + limbs[4] > 0 do
        local rest = 0
        for place = 1, 4 do
            local part = rest * 65536 + limbs[place]
            limbs[place] = floor(part / 10000)
            rest = part % 10000
        end
        digits = format("%04d", rest) .. digits
    end
    return (digits:gsub("^0+", ""))
end

local function from_words(high, low, negative)
    if high < 232830 then -- 232830 * 2^32 is just below 10^15
        local value = high * WORD + low
        return negative and -value or value
    end
    local digits = decimal(high, low)
    if #digits < 16 then
        local value = high * WORD + low
        return negative and -value or value
    end
    return negative and "-" .. digits or digits
end

local function big_endian(raw, first, last)
    local value = 0
    for at = first, last do
        value = value * 256 + byte(raw, at)
    end
    return value
end

-- Bytes as an unsigned number, the highest byte first.
function numbers.unsigned(raw, little)
    if little then
        raw = reverse(raw)
    end
    local size = #raw
    if size <= 6 then
        return big_endian(raw, 1, size)
    end
    return from_words(big_endian(raw, 1, size - 4), big_endian(raw, size - 3, size))
end

-- Bytes as a number in two's complement.
function numbers.signed(raw, little)
    if little then
        raw = reverse(raw)
    end
    local size = #raw
    if byte(raw, 1) < 128 then
        return numbers.unsigned(raw)
    end
    if size <= 6 then
        return big_endian(raw, 1, size) - POWER[8 * size]
    end
    local high = POWER[8 * (size - 4)] - 1 - big_endian(raw, 1, size - 4)
    local low = WORD - big_endian(raw, size - 3, size) -- inverted, plus one
    if low == WORD then
        high, low = high + 1, 0
    end
    return from_words(high, low, true)
end

-- `bits` bits of a group of bytes, `shift` bits above its lowest one.
function numbers.bits(raw, shift, bits)
    local size = #raw
    if size <= 6 then
        return floor(big_endian(raw, 1, size) / POWER[shift]) % POWER[bits]
    end
    local high, low = big_endian(raw, 1, size - 4), big_endian(raw, size - 3, size)
    if shift >= 32 then
        high, low = 0, floor(high / POWER[shift - 32])
    else
        high, low = floor(high / POWER[shift]), floor(low / POWER[shift]) + high % POWER[shift] * POWER[32 - shift]
    end
    if bits <= 32 then
        return low % POWER[bits]
    end
    return from_words(high % POWER[bits - 32], low)
end

-- Decimal digits, as characters (zero = 48) or as bytes (zero = 0); nil if one of them is none.
function numbers.digits(raw, zero)
    local value, text = 0, ""
    local long = #raw > 15
    for at = 1, #raw do
        local digit = byte(raw, at) - zero
        if digit < 0 or digit > 9 then
            return nil
        end
        if long then
            text = text .. format("%d", digit)
        else
            value = value * 10 + digit
        end
    end
    if not long then
        return value
    end
    text = text:gsub("^0+", "")
    if #text > 15 then
        return text
    end
    for at = 1, #text do
        value = value * 10 + byte(text, at) - 48
    end
    return value
end

-- A number as its decimal digits.
function numbers.text(value)
    if type(value) == "string" then
        return value
    end
    if value < 10000 and value >= 0 then -- what Lua writes the same way in all versions, and fast
        return tostring(value)
    end
    return format("%.0f", value)
end
