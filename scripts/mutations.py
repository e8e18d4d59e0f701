"""Small faults for `mutate.py`: every place of a module's syntax tree where one can be put, and the fault itself."""

import ast
import copy
import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

# Names that stand for things of the same type: taking one for the other is the classic fault of wiring.
NAMES = (
    ("train", "valid"),
    ("valid", "test"),
    ("entities", "relations"),
    ("head", "tail"),
    ("heads", "tails"),
    ("h", "t"),
    ("known", "reached"),
    ("limit", "seed"),
    ("total", "apart"),
    ("head_seen", "tail_seen"),
)
ATTRIBUTES = (
    *NAMES,
    ("observed", "known"),
    ("better", "equal"),
    ("rank", "size"),
    ("label", "display"),
    ("best", "weights"),
    ("factual_treatment", "counterfactual_treatment"),
    ("factual_probability", "counterfactual_probability"),
)
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
EXACT = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)  # whose opposite is the negation
DEFAULTS: dict[str, bool | int | float | str] = {"bool": False, "int": 0, "float": 0.0, "str": ""}
EMPTY: dict[str, ast.expr] = {"list": ast.List([], ast.Load()), "dict": ast.Dict([], [])}
FORMAL = {
    "repr",
    "encoding",
    "newline",
    "strict",
    "dtype",
}  # keywords that say how a thing is written, not what is done
SKIPPED = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)


@dataclass(frozen=True)
class Mutation:
    """One fault: `what` is done in function `where`; `apply` does it to the tree it was found in."""

    line: int
    span: tuple[int, int]  # the lines of its statement, or of the head of it; (0, 0): run when the module is imported
    where: str
    what: str
    apply: Callable[[], None]


@dataclass(frozen=True)
class Location:
    """A node, the function it is in, the names known there, and how to put another in its stead."""

    node: ast.AST
    where: str
    names: frozenset[str]
    returns: ast.expr | None
    put: Callable[[ast.AST], None]
    is_test: bool = False  # the condition of an if, while or comprehension
    span: tuple[int, int] = (0, 0)

    def to(self, new: ast.AST, what: str | None = None) -> Mutation:
        """The fault that puts `new` here."""
        said = what or f"{_text(self.node)} → {_text(new)}"
        line = getattr(self.node, "lineno", 0)
        return Mutation(line, self.span, self.where, said, lambda: self.put(ast.copy_location(new, self.node)))


def mutations(tree: ast.Module, namespace: Mapping[str, object]) -> list[Mutation]:
    """All faults of a module in the order of its text; equal descriptions are numbered.

    `namespace` is that of the module: what a function needs is not left out, since any test would notice.
    """
    top = Location(tree, "module", frozenset(), None, _refuse)
    found = [m for place in _places(tree, top) for m in _faults(place, namespace)]
    seen: Counter[tuple[str, str]] = Counter()
    numbered = []
    for m in found:
        seen[m.where, m.what] += 1
        count = seen[m.where, m.what]
        numbered.append(m if count == 1 else Mutation(m.line, m.span, m.where, f"{m.what} (no. {count})", m.apply))
    return numbered


def _refuse(_: ast.AST) -> None:
    raise AssertionError("a module is not replaced")


def _text(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else text[:60] + " … " + text[-25:]


def _places(node: ast.AST, inside: Location) -> Iterator[Location]:
    """Every node below that does something at run time, with its surroundings."""
    where, names, returns = inside.where, inside.names, inside.returns
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        where = node.name if where == "module" else f"{where}.{node.name}"
    if isinstance(node, ast.FunctionDef):
        names |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        returns = node.returns
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        items = value if isinstance(value, list) else [value]
        for index, child in enumerate(items):
            if not isinstance(child, ast.AST) or _idle(child, node):
                continue
            is_test = field in ("test", "ifs")
            put = _putter(node, field, index if isinstance(value, list) else None)
            in_function = isinstance(node, ast.FunctionDef) or inside.span != (0, 0)
            span = _span(child) if isinstance(child, ast.stmt) and in_function else inside.span
            place = Location(child, where, names, returns, put, is_test, span)
            yield place
            yield from _places(child, place)


def _span(node: ast.stmt) -> tuple[int, int]:
    """The lines of a statement; of one with a body, those before it."""
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
    return node.lineno, max(node.lineno, last)


def _putter(node: ast.AST, field: str, index: int | None) -> Callable[[ast.AST], None]:
    def put(new: ast.AST) -> None:
        if index is None:
            setattr(node, field, new)
        else:
            getattr(node, field)[index] = new

    return put


def _idle(node: ast.AST, parent: ast.AST) -> bool:
    """Whether a node is words, types or the texts of errors: nothing that could be wired wrongly."""
    if isinstance(node, SKIPPED):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.keyword) and node.arg in FORMAL:
        return True
    if isinstance(node, ast.If) and _text(node.test) == "TYPE_CHECKING":
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("field", "Field", "Literal"):
        return True
    kinds = isinstance(parent, ast.Call) and _text(parent.func) == "isinstance" and node is parent.args[-1]
    return kinds or (isinstance(parent, ast.ExceptHandler) and node is parent.type)


def _faults(place: Location, namespace: Mapping[str, object]) -> Iterator[Mutation]:
    node = place.node
    if place.is_test and isinstance(node, ast.expr) and not _is_exact(node) and not _is_not(node):
        yield place.to(ast.UnaryOp(ast.Not(), node), f"if {_text(node)} → if not")
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield place.to(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        if not isinstance(node.operand, ast.Constant):
            yield place.to(node.operand)
    elif isinstance(node, ast.Compare):
        changed = COMPARISONS.get(type(node.ops[0]))
        if changed is not None:
            yield place.to(ast.Compare(node.left, [changed(), *node.ops[1:]], node.comparators))
    elif isinstance(node, ast.BinOp):
        yield from _operators(place, node)
    elif isinstance(node, ast.Constant):
        yield from _constants(place, node)
    elif isinstance(node, ast.Call):
        yield from _dropped_keywords(place, node, namespace)
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from _swapped_names(place, node)
    elif isinstance(node, ast.stmt):
        yield from _statements(place, node)


def _is_exact(node: ast.expr) -> bool:
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], EXACT)


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _operators(place: Location, node: ast.BinOp) -> Iterator[Mutation]:
    words = any(isinstance(n, ast.Constant) and isinstance(n.value, str | None) for n in (node.left, node.right))
    changed = OPERATORS.get(type(node.op))
    if changed is not None and not words:
        yield place.to(ast.BinOp(node.left, changed(), node.right))


def _constants(place: Location, node: ast.Constant) -> Iterator[Mutation]:
    value = node.value
    if isinstance(value, bool):
        yield place.to(ast.Constant(not value), f"constant {value} → {not value}")
    elif isinstance(value, int):
        yield place.to(ast.Constant(value + 1), f"constant {value} → {value + 1}")
    elif isinstance(value, float):
        new = value * 2 if value else 1.0
        yield place.to(ast.Constant(new), f"constant {value} → {new}")


def _dropped_keywords(place: Location, node: ast.Call, namespace: Mapping[str, object]) -> Iterator[Mutation]:
    called = namespace.get(node.func.id) if isinstance(node.func, ast.Name) else None
    ours = callable(called) and getattr(called, "__module__", "").startswith("kgcf")
    taken = inspect.signature(called).parameters if callable(called) and ours else {}
    needed = {name for name, parameter in taken.items() if parameter.default is inspect.Parameter.empty}
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in FORMAL | needed:
            rest = [other for other in node.keywords if other is not keyword]
            said = f"{_text(node.func)}(… {_text(keyword)}) → left out"
            yield place.to(ast.Call(node.func, node.args, rest), said)


def _swapped_names(place: Location, node: ast.Name | ast.Attribute) -> Iterator[Mutation]:
    if not isinstance(node.ctx, ast.Load):
        return
    own, pairs = (node.id, NAMES) if isinstance(node, ast.Name) else (node.attr, ATTRIBUTES)
    for pair in pairs:
        if own not in pair:
            continue
        other = pair[1] if own == pair[0] else pair[0]
        if isinstance(node, ast.Name):
            if other in place.names:
                yield place.to(ast.Name(other, node.ctx))
        elif not (isinstance(node.value, ast.Name) and node.value.id == "self" and own in ("observed", "train")):
            yield place.to(ast.Attribute(node.value, other, node.ctx))


def _statements(place: Location, node: ast.stmt) -> Iterator[Mutation]:
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield place.to(ast.Pass(), f"{_text(node)} → nothing")
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Attribute | ast.Subscript):
            yield place.to(ast.Pass(), f"{_text(node)} → nothing")
    elif isinstance(node, ast.Return) and node.value is not None and place.returns is not None:
        new = _default_of(place.returns)
        if new is not None and ast.dump(new) != ast.dump(node.value):
            yield place.to(ast.Return(new))


def _default_of(annotation: ast.expr) -> ast.expr | None:
    """Nothing of the type that a function returns; None where that would be a type error."""
    if isinstance(annotation, ast.BinOp) and _text(annotation).endswith("| None"):
        return ast.Constant(None)
    if isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name):
        return copy.deepcopy(EMPTY.get(annotation.value.id))
    if isinstance(annotation, ast.Name) and annotation.id in DEFAULTS:
        return ast.Constant(DEFAULTS[annotation.id])
    return None


def mutate(source: str, number: int, namespace: Mapping[str, object]) -> ast.Module:
    """The module with its `number`-th fault."""
    tree = ast.parse(source)
    mutations(tree, namespace)[number].apply()
    return ast.fix_missing_locations(tree)
