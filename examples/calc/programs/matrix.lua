local function make(n, seed)
  local m = {}
  local scale = 1 / n / n
  for i = 0, n - 1 do
    local row = {}
    for j = 0, n - 1 do row[j + 1] = scale * (i - j) * (i + j + seed) end
    m[i + 1] = row
  end
  return m
end

local function transpose(m, n)
  local t = {}
  for i = 1, n do
    local row = {}
    for j = 1, n do row[j] = m[j][i] end
    t[i] = row
  end
  return t
end

local function dot(a, b, n)
  local sum = 0
  for k = 1, n do sum = sum + a[k] * b[k] end
  return sum
end

local function multiply(a, b, n)
  local t = transpose(b, n)
  local product = {}
  for i = 1, n do
    local row = {}
    for j = 1, n do row[j] = dot(a[i], t[j], n) end
    product[i] = row
  end
  return product
end

local n = 60
local total = 0
for round = 0, tonumber(arg[1] or 3) - 1 do
  local p = multiply(make(n, round), make(n, 2), n)
  total = total + p[n / 2 + 1][n / 2 + 1]
end
print(string.format("%.9f", total))
