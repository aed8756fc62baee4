#!/usr/bin/env python3
"""Counts the constructions that make a reader stop, in comments, guides and messages.

  riddles.py ROOT           one line per group of files; exit 1 if a group is above its limit
  riddles.py ROOT --files   one line per file as well
  riddles.py ROOT --list [GROUP]   every riddle of the groups with a limit, or of GROUP: file:line: rule: text
  riddles.py --self-test    each rule finds its examples, and leaves plain sentences alone

A block is a paragraph, list item or table row of a guide, a run of comment lines, or a message: the
string literals of one expression, if they have four words or more. Code is left out.
The limit is one riddle in a hundred blocks, in every group of files and in the messages.
"""
import pathlib
import re
import sys

LIMIT = 1.0  # riddles in a hundred blocks, in a group that has a limit

START = r"(?:^|(?<=[.:;!?] )|(?<=[.:;!?] `)|(?<=\) )|(?<=\*\* ))"  # where a sentence begins
BE = r"(?:is|are|was|were)"
# Verbs and nouns after which "what ..." is an indirect question, as in "shows what happens".
ASKING = (r"(?<!say )(?<!says )(?<!said )(?<!see )(?<!sees )(?<!show )(?<!shows )(?<!shown )(?<!tell )"
          r"(?<!tells )(?<!told )(?<!know )(?<!knows )(?<!known )(?<!ask )(?<!asks )(?<!decide )"
          r"(?<!decides )(?<!find out )(?<!finds out )(?<!learn )(?<!learns )(?<!explain )"
          r"(?<!explains )(?<!matter )(?<!list )(?<!lists )(?<!describes )(?<!describe )"
          r"(?<!understand )(?<!state )(?<!states )(?<!print )(?<!prints )")

# (name, pattern, sentences that it must find). Patterns see a block as one line.
RULES = [
    ("those who", r"\b(?:[Tt]hose|them) (?:who|whose|whom)\b|\b[Ww]ho(?:so)?ever\b|\bwhom\b",
     ["Those who are given what start() has made.", "Whoever keeps one compares the whole id."]),
    ("headless sentence",
     START + r"(?:Whether|Who|Whose|What|Which) [^.?]{3,}(?:[.:;](?: |$)|$)",
     ["Whose entry a code address is: what an indirect call has for a target.",
      "Threads ran. Whether they have.", "What was inlined is not asked for."]),
    ("headless where/how", START + r"(?:Where|How) [^.,?]{3,}(?:[.:;](?: |$)|$)",
     ["Where an access goes: base + offset.", "How many there are."]),
    ("headless what",
     ASKING + r"(?<![.:;] )(?<!^)\b[Ww]hat (?:" + BE + r"|has|have|had|can|could|cannot|must|may|does|did|"
     r"needs?|runs?|ran|comes?|goes|follows|remains?|stands?|lies|holds|belongs?|makes?)\b"
     r"|\bwhat [^.,;:?]{1,50} (?:" + BE + r"|has|have):",
     ["They are given what was made.", "This is sampled with what is inlined."]),
    ("fronted of", START + r"Of (?!(?:the |these |those |them|its )?\s*(?:\d|two|three|four|five|six|seven|"
     r"eight|nine|ten|hundred)|(?:the )?(?:rest|others)\b|course\b|these\b|them\b)",
     ["Of a method that was removed nothing is read.", "Ends. Of each the name is kept."]),
    ("anew", r"\banew\b", ["It is laid out anew."]),
    ("behind",
     r"(?<!fall )(?<!falls )(?<!fell )(?<!lag )(?<!lags )(?<!left )(?<!stay )(?<!stays )(?<!hide )"
     r"(?<!hides )(?<!hidden )(?<![`:])\b[Bb]ehind\b(?!:)(?! (?:an?|one|the|that|its)(?: \w+)? interface)",
     ["Guards behind it leave.", "Damaged traces are read behind the damage."]),
    ("but for", r"\bbut for\b", ["Nothing moves but for the stub."]),
    ("that of", r"(?<!so )(?<!such )(?<!Note )\b[Tt]hat of\b|" + START + r"Those of\b",
     ["Its size is that of the slab."]),
    ("which is what", r"\bwhich " + BE + r" (?:what|how|where|why)\b", ["It waits, which is what is asked."]),
    ("that there is", r"\b(?<!is )(?<!so )(?<!says )(?<!means )(?:that|best) there (?:is|are|was|were)\b",
     ["It takes the code that there is."]),
    ("has for", r"\b(?:has|have|had) for (?:an?|its|their|the)\b(?! (?:first|second|long|same|time|while|last|hundred))",
     ["It has for a target what was called."]),
    ("is another", r"\b" + BE + r" (?:another|other|such)(?=[.,;:)]| and\b| or\b|$)",
     ["Prints where the answer is another, too."]),
    ("inverted if", r"(?:, |^|[.;:] )(?:be|were|had|Were|Had|should|Should) (?:it|they|there|one|the|a|an|this) "
                    r"|, be it\b",
     ["It is omitted, be it a stub.", "Were there more, they would be lost."]),
    ("inverted order",
     START + r"(?:Beside|Beneath|Below|Above|Behind|Among|Between|Before|After|With|From|To|In|On|At|Into|"
     r"Onto|Not|Out of|Also|Likewise|Thus|There|Here|Then) (?:[^,.;:?]{1,40} )?"
     r"(?:stands?|lies?|belongs?|comes?|goes|remains?) (?:the|a|an|what|its|their|all|each|those|these)\b"
     r"|" + START + r"(?:This|That|These|Such) (?:it|they|we|nobody|no one|the \w+) (?:does|do|has|have|is|are|may|can|must)\b"
     r"|(?:of|from|to|in|on|by|with|for) which (?:nothing|nobody|no|none|one) ",
     ["Beside them stand the tools.", "This the runtime does itself.",
      "There are pages of which nothing is read.", "In its place comes the new code."]),
    ("is it that", r"\b[Ii]t " + BE + r" (?:\w+ ){1,4}that (?:decides|says|counts|makes|does|has|is)\b|\bbe that as\b",
     ["It is the policy that decides."]),
    ("of what",
     r"\b(?<!regardless )(?:of|by|in|for|from|with|than|into|after|before|under|through) what\b",
     ["It is merged with what the file holds."]),
    ("the host's to", BE + r" (?:the \w+|its \w+|nobody|somebody|one)'s to [a-z]+",
     ["The check is the host's to make."]),
]
RULES = [(name, re.compile(pattern), bad) for name, pattern, bad in RULES]

PLAIN = [
    "Returns the method whose entry stub is at `address`.",
    "Never dereference a removed method: its slot may be reused concurrently.",
    "Creates the components that need the code space.",
    "Marks / tests whether guest code ran since the last tick.",
    "Replays the decisions and prints the differences; exits with 1 if there are any.",
    "Stores after a `select`, in its block, through the selected address.",
    "number of removed methods the report still lists (fewer if max_methods runs out)",
    "Shows what happens when the code falls behind. What does it cost?",
    "Of the 13 programs, two got slower. Where rates adapt, the interval is a goal.",
    "Says what the flag does, and how often. Fields hide behind an interface.",
]

# (name, has a limit, which files, "prose" or "messages"), first match wins.
OPTION_FILES = re.compile(r"(?:tiering|include/uptier)/(?:.*/)?options[^/]*\.(?:cc|h)$")
GROUPS = [
    ("README.md", True, lambda p: p == "README.md"),
    ("include/uptier", True, lambda p: p.startswith("include/uptier/")),
    ("docs, HACKING, SECURITY", True,
     lambda p: re.fullmatch(r"docs/[^/]+\.md|HACKING\.md|SECURITY\.md|(?:bench|tests)/README\.md", p)),
    ("docs/notes", True, lambda p: p.startswith("docs/notes/")),
    ("other READMEs", True, lambda p: p.endswith(".md")),
    ("tiering", True, lambda p: p.startswith("tiering/")),
    ("jit", True, lambda p: p.startswith("jit/")),
    ("profile", True, lambda p: p.startswith("profile/")),
    ("sampler", True, lambda p: p.startswith("sampler/")),
    ("embed", True, lambda p: p.startswith("embed/")),
    ("tracing", True, lambda p: p.startswith("tracing/")),
    ("tools", True, lambda p: p.startswith("tools/")),
    ("examples, bench", True, lambda p: p.startswith(("examples/", "bench/"))),
    ("tests", True, lambda p: p.startswith("tests/")),
]
MESSAGES = re.compile(r"^(?:tools|tiering|embed|tracing|profile|sampler|jit|include)/")
MESSAGE_GROUP = "help, options, errors"


def paragraphs(text):
    """Yields (line, text) of each block of a Markdown file, without code."""
    block, begin, fenced = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        stripped = line.strip()
        if stripped.startswith("```"):
            fenced = not fenced
            stripped = ""
        code = fenced or (re.match(r" {4}|\t", line) and not block)
        item = re.match(r"(?:[-*+]|\d+\.|#+) |\|", stripped)
        if (not stripped or code or item) and block:
            yield begin, " ".join(block)
            block = []
        if stripped and not code and not stripped.startswith("#"):
            if not block:
                begin = number
            block.append(re.sub(r"^(?:[-*+]|\d+\.|#+) ", "", stripped))


COMMENT = re.compile(r"^(.*?)(?://+|(?<!.)#+ ?(?!\!))\s?(.*)$")


def comments(text, mark="//"):
    """Yields (line, text) of each run of comments; an empty comment line ends a run."""
    block, begin, own = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        at = re.search(r'(?<![:"\w])' + mark + r"+ ?(.*)$", line)
        if at and line[: at.start()].count('"') % 2:
            at = None
        alone = at is not None and not line[: at.start()].strip()
        words = at[1].strip() if at else ""
        goes_on = block and alone and words and (own or at.start() > 20)
        if block and not goes_on:
            yield begin, " ".join(block)
            block = []
        # Lists, formulas and code within comments are indented.
        if words and not (alone and re.match(r"\s{3,}", at[1])):
            if not block:
                begin, own = number, alone
            block.append(re.sub(r"^[-*] ", "", words))


STRINGS = re.compile(r'(?:R"(\w*)\((.*?)\)\1"|"((?:\\.|[^"\\\n])*)"(?:\s*(?:\n\s*)?"((?:\\.|[^"\\\n])*)")*)', re.S)
PIECE = re.compile(r'"((?:\\.|[^"\\\n])*)"')


def messages(text):
    """Yields (line, text) of each string of four words or more; adjacent literals are one."""
    code = re.sub(r"^\s*#include.*$|(?<![:\"\w])//.*$", "", text, flags=re.M)
    for match in STRINGS.finditer(code):
        whole = match[2] if match[2] is not None else "".join(PIECE.findall(match[0]))
        line = code.count("\n", 0, match.start()) + 1
        for piece in re.split(r"\\n|\n", whole):
            if len(re.findall(r"[A-Za-z]{2,}", piece)) >= 4:
                yield line, piece.strip()


def riddles(block):
    """Yields (rule, text) of each riddle in one block."""
    block = re.sub(r"\s+", " ", block).strip()
    for cell in re.split(r"(?<!\\)\|", block) if block.startswith("|") else [block]:
        for name, pattern, _ in RULES:
            for match in pattern.finditer(cell.strip()):
                yield name, cell.strip()[max(0, match.start() - 30): match.end() + 30]


def blocks_of(path, text):
    """Yields (group, line, block) of one file; `path` is relative to the root."""
    group = next((name for name, _, has in GROUPS if has(path)), None)
    if path.endswith(".md"):
        found = paragraphs(text)
    else:
        found = comments(text, "//" if path.endswith((".h", ".cc", ".c")) else "#")
        if MESSAGES.match(path) and path.endswith((".cc", ".h", ".c")):
            for line, block in messages(text):
                yield MESSAGE_GROUP, line, block
        if OPTION_FILES.match(path):
            group = MESSAGE_GROUP
    if group is not None:
        for line, block in found:
            yield group, line, block


def count_tree(root):
    """Returns {(group, file): [blocks, [(line, rule, text)]]}."""
    root = pathlib.Path(root)
    counts = {}
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root).as_posix()
        if path.suffix not in (".md", ".h", ".cc", ".c", ".py") or not path.is_file():
            continue
        if relative.startswith(("build", ".")) or "/build/" in relative or relative.endswith("checks/riddles.py"):
            continue
        for group, line, block in blocks_of(relative, path.read_text(encoding="utf-8", errors="replace")):
            entry = counts.setdefault((group, relative), [0, []])
            entry[0] += 1
            entry[1] += [(line, rule, text) for rule, text in riddles(block)]
    return counts


def report(counts, files, listed):
    """Prints the counts; returns whether a group is above its limit."""
    limits = {name: has for name, has, _ in GROUPS} | {MESSAGE_GROUP: True}
    too_many = False
    for group in sorted(limits, key=lambda g: not limits[g]):
        of_group = {path: entry for (name, path), entry in counts.items() if name == group}
        blocks = sum(entry[0] for entry in of_group.values())
        found = sum(len(entry[1]) for entry in of_group.values())
        rate = 100 * found / blocks if blocks else 0.0
        above = limits[group] and rate > LIMIT
        too_many |= above
        print(f"{group:26} {found:5} in {blocks:6} blocks: {rate:5.1f} in 100"
              + (" ABOVE THE LIMIT" if above else "" if limits[group] else " (no limit)"))
        for path, (many, lines) in of_group.items():
            if files and many:
                print(f"    {path:44} {len(lines):4} in {many:5}: {100 * len(lines) / many:5.1f}")
            if (limits[group] and listed == "") or listed == group:
                for line, rule, text in lines:
                    print(f"{path}:{line}: {rule}: {text}")
    return too_many


def self_test():
    failed = []
    for name, pattern, examples in RULES:
        for example in examples:
            if not pattern.search(example):
                failed.append(f"'{name}' does not find: {example}")
    for sentence in PLAIN:
        failed += [f"'{rule}' finds a plain sentence: {sentence}" for rule, _ in riddles(sentence)]
    guide = "# A\n\nOne\ntwo.\n- three\n\n```cpp\n// anew\n```\n    anew\n\n| a | anew |\n"
    if [b for _, b in paragraphs(guide)] != ["One two.", "three", "| a | anew |"]:
        failed.append(f"paragraphs: {list(paragraphs(guide))}")
    code = '// One\n// two.\n//\n// Three.\nint a;  // four\nf("http://x", "it is read anew", "now");\n'
    if [b for _, b in comments(code)] != ["One two.", "Three.", "four"]:
        failed.append(f"comments: {list(comments(code))}")
    if [b for _, b in messages(code)] != ["it is read anew"]:
        failed.append(f"messages: {list(messages(code))}")
    print("\n".join(failed) or f"riddles: {len(RULES)} rules find what they should")
    return bool(failed)


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    listed = None
    if "--list" in sys.argv:
        listed = " ".join(sys.argv[sys.argv.index("--list") + 1:])
    return report(count_tree(sys.argv[1]), "--files" in sys.argv, listed)


if __name__ == "__main__":
    sys.exit(main())
