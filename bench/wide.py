#!/usr/bin/env python3
"""Writes a WebAssembly module of many small methods of equal weight, for profiles.

    wide.py METHODS ROUNDS OUT.wasm

Its start function calls every method through the table, ROUNDS times in turn. Each method takes one of
two ways, by the lowest bit of its argument.
"""
import random, sys


def unsigned(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n])


def signed(n):
    out = bytearray()
    while not -64 <= n < 64:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n & 127])


def sized(content):
    return unsigned(len(content)) + content


def vector(items):
    return unsigned(len(items)) + b"".join(items)


LOCAL_GET, LOCAL_SET, LOCAL_TEE, CONST = 0x20, 0x21, 0x22, 0x41
IF, ELSE, LOOP, BR_IF, END, CALL_INDIRECT = 0x04, 0x05, 0x03, 0x0D, 0x0B, 0x11
I32, EMPTY, AND, ADD, SUB, MUL, XOR, LT_S = 0x7F, 0x40, 0x71, 0x6A, 0x6B, 0x6C, 0x73, 0x48


def get(local):
    return bytes([LOCAL_GET, local])


def const(n):
    return bytes([CONST]) + signed(n)


# x odd: x * k + 1; else x ^ k.
def method(k):
    odd = get(0) + const(k) + bytes([MUL]) + const(1) + bytes([ADD])
    even = get(0) + const(k) + bytes([XOR])
    code = get(0) + const(1) + bytes([AND, IF, I32]) + odd + bytes([ELSE]) + even + bytes([END, END])
    return sized(vector([]) + code)


# Locals: 0 rounds left, 1 the method, 2 what the last one returned.
def start(methods, rounds):
    call = get(2) + get(1) + bytes([CALL_INDIRECT, 1, 0, LOCAL_SET, 2])
    step = get(1) + const(1) + bytes([ADD, LOCAL_TEE, 1]) + const(methods) + bytes([LT_S, BR_IF, 0])
    inner = const(0) + bytes([LOCAL_SET, 1, LOOP, EMPTY]) + call + step + bytes([END])
    again = get(0) + const(1) + bytes([SUB, LOCAL_TEE, 0, BR_IF, 0])
    outer = const(rounds) + bytes([LOCAL_SET, 0, LOOP, EMPTY]) + inner + again + bytes([END, END])
    return sized(vector([bytes([3, I32])]) + outer)


def section(number, content):
    return bytes([number]) + sized(content)


def module(methods, rounds):
    draw = random.Random(1)
    types = vector([b"\x60\0\0", bytes([0x60, 1, I32, 1, I32])])
    functions = vector([b"\1"] * methods + [b"\0"])
    table = vector([b"\x70\0" + unsigned(methods)])
    exports = vector([sized(b"_start") + b"\0" + unsigned(methods), sized(b"memory") + b"\2\0"])
    elements = vector([b"\0" + const(0) + bytes([END]) + vector([unsigned(i) for i in range(methods)])])
    bodies = [method(draw.randrange(3, 1000)) for _ in range(methods)]
    code = vector([*bodies, start(methods, rounds)])
    return (b"\0asm\1\0\0\0" + section(1, types) + section(3, functions) + section(4, table) +
            section(5, vector([b"\0\1"])) + section(7, exports) + section(9, elements) +
            section(10, code))


if __name__ == "__main__":
    with open(sys.argv[3], "wb") as out:
        out.write(module(int(sys.argv[1]), int(sys.argv[2])))
