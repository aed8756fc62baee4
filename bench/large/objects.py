# Classes, dictionaries, lists, sorting.
import collections


class Node:
    __slots__ = ("key", "left", "right")

    def __init__(self, key):
        self.key, self.left, self.right = key, None, None

    def insert(self, key):
        node = self
        while True:
            side = "left" if key < node.key else "right"
            child = getattr(node, side)
            if child is None:
                setattr(node, side, Node(key))
                return
            node = child

    def walk(self):
        if self.left:
            yield from self.left.walk()
        yield self.key
        if self.right:
            yield from self.right.walk()


x, keys = 12345, []
for _ in range(60000):
    x = (x * 1103515245 + 12345) % 2**31
    keys.append(x >> 4)
root = Node(keys[0])
for key in keys[1:]:
    root.insert(key)
print(list(root.walk()) == sorted(keys))
counts = collections.Counter(key % 1000 for key in keys * 10)
print(sorted(counts.items(), key=lambda c: (-c[1], c[0]))[:3])
print(sum(len(str(key)) for key in keys if key % 3 == 0))
