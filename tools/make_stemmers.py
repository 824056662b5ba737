#!/usr/bin/env python3
"""Turns the stemmers of the package snowballstemmer into C++, as part of the build.

    make_stemmers.py OUT_DIR LANGUAGE...

Why: indices that the real packages made hold stems of Snowball 3.1, whose C library no Debian release has yet; older ones
disagree about a third of all Dutch and some English words. The package is generated code itself, of few shapes: anything
else stops the build here. The classes become structs on top of src/index/text/snowball_env.h.
"""

import ast
import importlib.util
import pathlib
import sys


class Unknown(Exception):
    def __init__(self, node):
        super().__init__(f"line {node.lineno}: no C++ for: {ast.unparse(node)[:100]}")


def literal(text):
    """A string as a U"" literal; each character by number, so that no escape runs into the next one."""
    return 'U"' + "".join(c if c.isascii() and c.isalnum() else f'\\U{ord(c):08X}' for c in text) + '"'


def mangled(name):
    return name.lstrip("_")


class Function:
    """One method of a stemmer."""

    def __init__(self, node, class_name):
        self.node, self.class_name = node, class_name
        self.lines, self.labels, self.used, self.numbers, self.texts = [], [], set(), set(), set()
        self.count = 0

    # Expressions.

    def own(self, node):
        """NAME of self.NAME, else None."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return mangled(node.attr)
        return None

    def table(self, node):
        """NAME of Class.NAME, else None."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == self.class_name:
            return node.attr
        return None

    def value(self, node):
        if self.own(node):
            return self.own(node)
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                return "true" if node.value else "false"
            return str(node.value) if isinstance(node.value, int) else literal(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            return f"{self.value(node.left)} {'+' if isinstance(node.op, ast.Add) else '-'} {self.value(node.right)}"
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"-{self.value(node.operand)}"
        if isinstance(node, ast.Subscript):
            table = self.table(node.value)
            if table:
                return f"{table}[{self.value(node.slice)}]"
            if self.own(node.value) == "current":
                return f"At({self.value(node.slice)})"
        if isinstance(node, ast.Call):
            return self.call(node)
        raise Unknown(node)

    def call(self, node):
        if isinstance(node.func, ast.Name) and node.func.id == "len" and self.own(node.args[0]) == "current":
            return "length()"
        name = self.own(node.func)
        if not name:
            raise Unknown(node)
        return f"{name}({', '.join(self.table(a) or self.value(a) for a in node.args)})"

    def test(self, node):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return f"!{self.test(node.operand)}"
        if isinstance(node, ast.BoolOp):
            return (" || " if isinstance(node.op, ast.Or) else " && ").join(self.test(v) for v in node.values)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            sign = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}[type(node.ops[0])]
            right = node.comparators[0]
            if isinstance(right, ast.Constant) and isinstance(right.value, str):  # one character of the word
                if len(right.value) != 1:
                    raise Unknown(node)
                return f"{self.value(node.left)} {sign} char32_t{{0x{ord(right.value):X}}}"
            return f"{self.value(node.left)} {sign} {self.value(right)}"
        return self.value(node)

    # Statements.

    def put(self, line, depth):
        self.lines.append("  " * depth + line)

    def block(self, body, depth):
        for node in body:
            self.statement(node, depth)

    def assign(self, node, depth):
        [target] = node.targets if isinstance(node, ast.Assign) else [node.target]
        name = self.own(target)
        if not name and isinstance(target, ast.Name):
            name = target.id
            (self.texts if name.startswith("S_") else self.numbers).add(name)
        if not name:
            raise Unknown(node)
        sign = "=" if isinstance(node, ast.Assign) else {ast.Add: "+=", ast.Sub: "-="}[type(node.op)]
        # What a comparison found becomes a flag; all else is a value.
        value = self.test(node.value) if isinstance(node.value, ast.Compare) else self.value(node.value)
        self.put(f"{name} {sign} {value};", depth)

    def statement(self, node, depth):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            self.assign(node, depth)
        elif isinstance(node, ast.Expr):
            self.put(f"{self.call(node.value)};", depth)
        elif isinstance(node, ast.Return):
            self.put(f"return {self.test(node.value)};", depth)
        elif isinstance(node, ast.Break):
            self.put("break;", depth)
        elif isinstance(node, ast.Continue):
            self.put("continue;", depth)
        elif isinstance(node, ast.Pass):
            pass
        elif isinstance(node, ast.Raise):
            name = node.exc.func.id
            for label, unique in reversed(self.labels):
                if label == name:
                    self.used.add(unique)
                    return self.put(f"goto {unique};", depth)
            raise Unknown(node)
        elif isinstance(node, ast.Try):
            [handler] = node.handlers
            if node.orelse or node.finalbody or not isinstance(handler.body[0], ast.Pass):
                raise Unknown(node)
            unique = f"{handler.type.id}_{self.count}"
            self.count += 1
            self.labels.append((handler.type.id, unique))
            self.put("{", depth)
            self.block(node.body, depth + 1)
            self.put("}", depth)
            self.labels.pop()
            if unique in self.used:
                self.put(f"{unique}:;", depth)
        elif isinstance(node, ast.If):
            self.put(f"if ({self.test(node.test)}) {{", depth)
            self.block(node.body, depth + 1)
            if node.orelse:
                self.put("} else {", depth)
                self.block(node.orelse, depth + 1)
            self.put("}", depth)
        elif isinstance(node, ast.While) and not node.orelse:
            self.put(f"while ({self.test(node.test)}) {{", depth)
            self.block(node.body, depth + 1)
            self.put("}", depth)
        elif isinstance(node, ast.For) and not node.orelse:  # so many times
            if not isinstance(node.iter, ast.Tuple):
                raise Unknown(node)
            self.put(f"for (int times = {len(node.iter.elts)}; times > 0; --times) {{", depth)
            self.block(node.body, depth + 1)
            self.put("}", depth)
        else:
            raise Unknown(node)

    def text(self):
        self.block(self.node.body, 2)
        out = [f"  bool {mangled(self.node.name)}() {{"]
        out += [f"    [[maybe_unused]] int {name} = 0;" for name in sorted(self.numbers)]
        out += [f"    std::u32string {name};" for name in sorted(self.texts)]
        return out + self.lines + ["  }", ""]


def among(node, struct):
    args = node.args
    index = [ast.literal_eval(a) for a in args[1:3]]
    method = f"&{struct}::{mangled(args[3].id)}" if len(args) > 3 else "nullptr"
    return f"{{{literal(args[0].value)}, {index[0]}, {index[1]}, {method}}}"


def convert(language, source):
    # The other classes are its jumps.
    node = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef))
    struct = node.name
    members, tables, functions = [], [], []
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            functions += Function(item, struct).text()
        elif isinstance(item, ast.Assign):
            name, value = item.targets[0].id, item.value
            if name.startswith("g_"):  # a set of characters
                characters = "".join(sorted(ast.literal_eval(value)))
                members.append(f"  static constexpr std::u32string_view {name} = {literal(characters)};")
            elif name.startswith("as_"):
                entries = ", ".join(literal(v) for v in ast.literal_eval(value))
                members.append(f"  static constexpr std::u32string_view {name}[] = {{{entries}}};")
            elif name.startswith("a_"):
                members.append(f"  static const Among<{struct}> {name}[{len(value.elts)}];")
                rows = ",\n    ".join(among(v, struct) for v in value.elts)
                tables.append(f"const Among<{struct}> {struct}::{name}[{len(value.elts)}] = {{\n    {rows}}};")
            elif name.startswith("I_"):
                members.append(f"  int {name} = {ast.literal_eval(value)};")
            elif name.startswith("B_"):
                members.append(f"  bool {name} = {'true' if ast.literal_eval(value) else 'false'};")
            else:
                raise Unknown(item)
        elif not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)):  # not its description
            raise Unknown(item)
    lines = [f"// {language}, from the package snowballstemmer by tools/make_stemmers.py. Do not edit.",
             '#include "index/text/snowball_env.h"', "", "namespace glaive::text::snowball {", "namespace {", "",
             f"struct {struct} : Env<{struct}> {{", *members, "", *functions[:-1], "};", "", *tables, "", "}  // namespace", "",
             f"void Stem{language.capitalize()}(std::u32string* word) {{ {struct}().Run(word); }}", "",
             "}  // namespace glaive::text::snowball", ""]
    return "\n".join(lines)


def main():
    out, languages = pathlib.Path(sys.argv[1]), sys.argv[2:]
    package = importlib.util.find_spec("snowballstemmer")
    if package is None:
        sys.exit("make_stemmers: no package snowballstemmer for this Python; run `make setup`")
    directory = pathlib.Path(package.origin).parent
    out.mkdir(parents=True, exist_ok=True)
    for language in languages:
        source = (directory / f"{language}_stemmer.py").read_text(encoding="utf-8")
        try:
            text = convert(language, source)
        except Unknown as error:
            sys.exit(f"make_stemmers: {language}: {error}")
        (out / f"stem_{language}.cc").write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
