local sub, byte, floor = string.sub, string.byte, math.floor
local function word(k)
  local letters = "etaoinshrd"
  local text = ""
  while k > 0 do
    text = text .. sub(letters, k % 10 + 1, k % 10 + 1)
    k = floor(k / 10)
  end
  return text
end

local function sentence(from, words)
  local parts = {}
  for i = 0, words - 1 do
    parts[#parts + 1] = word((from * 7919 + i * 104729) % 99991)
    parts[#parts + 1] = " "
  end
  return table.concat(parts)
end

local function count(text, letter)
  local found = 0
  for i = 1, #text do
    if byte(text, i) == letter then found = found + 1 end
  end
  return found
end

local function longest(text)
  local best = ""
  local start = 1
  for i = 1, #text do
    if byte(text, i) == 32 then
      if i - start > #best then best = sub(text, start, i - 1) end
      start = i + 1
    end
  end
  return best
end

local spaces, e, last = 0, 0, ""
for round = 0, tonumber(arg[1] or 100) - 1 do
  local text = sentence(round, 40)
  spaces = spaces + count(text, 32)
  e = e + count(text, 101)
  local found = longest(text)
  if found > last then last = found end
end
print(spaces .. " " .. e .. " " .. last)
