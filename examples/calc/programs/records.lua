local function circle(r)
  return {kind = "circle", r = r, area = function(self) return 3 * self.r * self.r end}
end
local function square(a)
  return {kind = "square", a = a, area = function(self) return self.a * self.a end}
end

local function deposit(self, amount)
  self.balance = self.balance + amount
  self.moves = self.moves + 1
  return self.balance
end
local function withdraw(self, amount)
  if amount > self.balance then return false end
  self.balance = self.balance - amount
  self.moves = self.moves + 1
  return true
end
local function account(start)
  return {balance = start, moves = 0, deposit = deposit, withdraw = withdraw}
end

local function trade(a, b, n)
  for i = 0, n - 1 do
    a.deposit(a, i % 10)
    if b.withdraw(b, 5) then a.deposit(a, 5) end
    if a.withdraw(a, 7) then b.deposit(b, 7) end
  end
  return a.balance + b.balance
end

local function areas(list, n)
  local sum = 0
  for i = 0, n - 1 do
    local s = list[i % #list + 1]
    sum = (sum + s.area(s)) % 1000003
  end
  return sum
end

local list = {}
for i = 1, 8 do list[i] = i % 2 == 0 and circle(i) or square(i) end
local a, b = account(100), account(100)
local total = 0
for round = 1, tonumber(arg[1] or 200) do
  total = (total + trade(a, b, 100)) % 1000003
  total = (total + areas(list, 100)) % 1000003
end
print(total .. " " .. a.moves .. " " .. b.moves)
