local function counter(step)
  local n = 0
  return function()
    n = n + step
    return n
  end
end
local function compose(f, g) return function(x) return g(f(x)) end end
local function map(a, f)
  local out = {}
  for i = 1, #a do out[i] = f(a[i]) end
  return out
end
local function fold(a, start, f)
  local value = start
  for i = 1, #a do value = f(value, a[i]) end
  return value
end

local numbers = {}
for i = 0, 49 do numbers[i + 1] = i end
local limit = 1000
local both = compose(function(x) return x * 3 end, function(x) return x % limit end)
local add = function(a, b) return a + b end
local total = 0
for round = 0, tonumber(arg[1] or 300) - 1 do
  local next = counter(round % 5)
  total = total + fold(map(numbers, both), 0, add)
  for i = 0, 49 do total = total + next() end
  total = total % 1000003
end
print(total)
