# Calls, integers and floating point.
import math


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def advance(bodies, dt, steps):
    pairs = [(a, b) for i, a in enumerate(bodies) for b in bodies[i + 1:]]
    for _ in range(steps):
        for a, b in pairs:
            dx, dy = a[0] - b[0], a[1] - b[1]
            m = dt / (dx * dx + dy * dy + 0.01) ** 1.5
            a[2] -= dx * b[4] * m
            a[3] -= dy * b[4] * m
            b[2] += dx * a[4] * m
            b[3] += dy * a[4] * m
        for body in bodies:
            body[0] += dt * body[2]
            body[1] += dt * body[3]


print(fib(28))
bodies = [[math.cos(i), math.sin(2 * i), 0.0, 0.0, 1.0 + i] for i in range(5)]
advance(bodies, 0.001, 20000)
print(["%.6f" % body[0] for body in bodies])
print(pow(3, 10**18, 10**9 + 7), 2**2000 % 1000007)
