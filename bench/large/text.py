# Strings, regular expressions, JSON, hashes.
import hashlib, json, re

record = {str(i): [i, i * 1.5, "word%d" % (i % 50)] for i in range(4000)}
text = json.dumps(record)
for _ in range(20):
    text = json.dumps(json.loads(text))
print(hashlib.sha256(text.encode()).hexdigest())
words = re.findall(r"word(\d+)", text)
print(len(words), sum(map(int, words)))
print(re.sub(r"(\d+)\.5", lambda m: "<" + m.group(1) + ">", text)[:60])
print(len(" ".join(w.upper().center(12, "-") for w in words)))
