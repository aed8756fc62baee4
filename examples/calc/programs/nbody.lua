local sqrt = math.sqrt
local solar_mass = 4 * math.pi * math.pi
local year = 365.24

local function body(x, y, z, v, mass)
  return {x = x, y = y, z = z, vx = v[1] * year, vy = v[2] * year, vz = v[3] * year,
          mass = mass * solar_mass}
end

local function planets()
  return {
    body(0.0, 0.0, 0.0, {0.0, 0.0, 0.0}, 1.0),
    body(4.84143144246472090e+00, -1.16032004402742839e+00, -1.03622044471123109e-01,
         {1.66007664274403694e-03, 7.69901118419740425e-03, -6.90460016972063023e-05},
         9.54791938424326609e-04),
    body(8.34336671824457987e+00, 4.12479856412430479e+00, -4.03523417114321381e-01,
         {-2.76742510726411899e-03, 4.99852801234917238e-03, 2.30417297573763929e-05},
         2.85885980666130812e-04),
    body(1.28943695621391310e+01, -1.51111514016986312e+01, -2.23307578892655734e-01,
         {2.96460137564761618e-03, 2.37847173959480950e-03, -2.96589568540237556e-05},
         4.36624404335156298e-05),
    body(1.53796971148509165e+01, -2.59193146099879641e+01, 1.79258772950371181e-01,
         {2.68067772490389322e-03, 1.62824170038242295e-03, -9.51592254519715870e-05},
         5.15138902046611451e-05)}
end

local function advance(bodies, dt)
  local n = #bodies
  for i = 1, n do
    local a = bodies[i]
    for j = i + 1, n do
      local b = bodies[j]
      local dx = a.x - b.x
      local dy = a.y - b.y
      local dz = a.z - b.z
      local d2 = dx * dx + dy * dy + dz * dz
      local mag = dt / (d2 * sqrt(d2))
      a.vx = a.vx - dx * b.mass * mag
      a.vy = a.vy - dy * b.mass * mag
      a.vz = a.vz - dz * b.mass * mag
      b.vx = b.vx + dx * a.mass * mag
      b.vy = b.vy + dy * a.mass * mag
      b.vz = b.vz + dz * a.mass * mag
    end
  end
  for k = 1, n do
    local p = bodies[k]
    p.x = p.x + dt * p.vx
    p.y = p.y + dt * p.vy
    p.z = p.z + dt * p.vz
  end
end

local function energy(bodies)
  local e = 0
  for i = 1, #bodies do
    local a = bodies[i]
    e = e + 0.5 * a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz)
    for j = i + 1, #bodies do
      local b = bodies[j]
      local dx = a.x - b.x
      local dy = a.y - b.y
      local dz = a.z - b.z
      e = e - a.mass * b.mass / sqrt(dx * dx + dy * dy + dz * dz)
    end
  end
  return e
end

local function offset(bodies)
  local px, py, pz = 0, 0, 0
  for i = 1, #bodies do
    local a = bodies[i]
    px = px + a.vx * a.mass
    py = py + a.vy * a.mass
    pz = pz + a.vz * a.mass
  end
  local sun = bodies[1]
  sun.vx = -px / solar_mass
  sun.vy = -py / solar_mass
  sun.vz = -pz / solar_mass
end

local bodies = planets()
offset(bodies)
print(string.format("%.9f", energy(bodies)))
for i = 1, tonumber(arg[1] or 3000) do advance(bodies, 0.01) end
print(string.format("%.9f", energy(bodies)))
