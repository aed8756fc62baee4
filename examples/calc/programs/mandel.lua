local function steps(cx, cy, limit)
  local x, y, n = 0.0, 0.0, 0
  while n < limit do
    local xx = x * x
    local yy = y * y
    if xx + yy > 4.0 then return n end
    y = 2.0 * x * y + cy
    x = xx - yy + cx
    n = n + 1
  end
  return n
end

local function mandel(size, limit)
  local inside, total = 0, 0
  for i = 0, size - 1 do
    for j = 0, size - 1 do
      local n = steps(3.0 * i / size - 2.0, 2.0 * j / size - 1.0, limit)
      if n == limit then inside = inside + 1 end
      total = total + n
    end
  end
  print(inside .. " " .. total)
end
mandel(tonumber(arg[1] or 60), 200)
