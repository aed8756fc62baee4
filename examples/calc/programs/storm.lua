local function plus(a, b)
  if type(a) == "string" then return a .. b end
  return a + b
end
local function bigger(a, b)
  if a < b then return b end
  return a
end
local function get(r) return r.v end
local function twice(f, x) return f(f(x)) end

local function value(kind, i)
  if kind == 0 then return i end
  if kind == 1 then return i + 0.5 end
  if kind == 2 then return "s" .. tostring(i % 10) end
  if kind == 3 then return 2147483000 + i end
  return -i
end
local function box(kind, v)
  if kind == 0 then return {v = v} end
  if kind == 1 then return {a = 1, v = v} end
  if kind == 2 then return {a = 1, b = 2, v = v} end
  if kind == 3 then return {b = 1, v = v} end
  if kind == 4 then return {c = 1, a = 2, v = v} end
  return {d = 1, v = v}
end
local function id(x) return x end
local function same(x) return x end

local seen, text, sum = 0, "", 0
for round = 0, tonumber(arg[1] or 200) - 1 do
  local kind = round % 5
  for i = 0, 99 do
    local x = value(kind, i)
    local y = value(kind, 100 - i)
    local most = bigger(plus(x, y), get(box(round % 6, x)))
    if i % 2 == 0 then most = twice(id, most) else most = twice(same, most) end
    if kind == 2 then text = most else sum = math.fmod(sum + most, 1000003) end
    seen = seen + 1
  end
end
print(string.format("%d %.14g %s", seen, sum, text))
