"""Selectors as text: `labelSelector=` and `fieldSelector=` of list and watch requests.

The two grammars differ in every detail (sets and whitespace in one, escapes in the other), as do their rules
for an absent key: a label selector knows absence, a field selector reads an absent field as empty.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from muster.objects.selectors import Operator, Requirement, Selector, SelectorError, requirement

_TOKEN = re.compile(r"[ \t\r\n]*(?:(==|!=|[=!<>(),])|([^ \t\r\n=!<>(),]+))")
_COMPARISONS: dict[str, Operator] = {"=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}
_SETS: dict[str, Operator] = {"in": "In", "notin": "NotIn"}
_FIELD = re.compile(r"(.*?)(!=|==|=)(.*)", re.DOTALL)
_FIELD_TERM = re.compile(r"(?:[^\\,]|\\.)+", re.DOTALL)
_ESCAPE = re.compile(r"\\(.?)|[,=]", re.DOTALL)


def parse_label_selector(text: str) -> Selector:
    """Parse `a=b,c!=d,e in (x,y),f notin (z),g,!h,i>5`; empty text selects everything."""
    tokens = _tokens(text)
    found: list[Requirement] = []
    while tokens.ahead:
        found.append(_requirement(tokens))
        if tokens.ahead:
            tokens.take(",")
            if not tokens.ahead:
                raise tokens.unexpected("a label after ','")
    return Selector(tuple(found))


@dataclass(slots=True)
class _Tokens:
    text: str
    words: list[str]

    @property
    def ahead(self) -> str:
        return self.words[-1] if self.words else ""

    def take(self, wanted: str) -> None:
        if self.ahead != wanted:
            raise self.unexpected(f"'{wanted}'")
        self.words.pop()

    def word(self, what: str) -> str:
        if not self.ahead or _is_symbol(self.ahead):
            raise self.unexpected(what)
        return self.words.pop()

    def unexpected(self, wanted: str) -> SelectorError:
        return SelectorError(f"label selector '{self.text}': found '{self.ahead or 'end of text'}', expected {wanted}")


def _tokens(text: str) -> _Tokens:
    words = [symbol or word for symbol, word in _TOKEN.findall(text)]
    return _Tokens(text, words[::-1])


def _is_symbol(word: str) -> bool:
    return word in _COMPARISONS or word in "!(),"


def _requirement(tokens: _Tokens) -> Requirement:
    if tokens.ahead == "!":
        tokens.words.pop()
        return requirement(tokens.word("a label name"), "DoesNotExist", ())
    key = tokens.word("a label name")
    if tokens.ahead in {"", ","}:
        return requirement(key, "Exists", ())
    if operator := _COMPARISONS.get(tokens.ahead):
        tokens.words.pop()
        value = "" if tokens.ahead in {"", ","} else tokens.word("a value")
        return requirement(key, operator, [value])
    if operator := _SETS.get(tokens.ahead):
        tokens.words.pop()
        return requirement(key, operator, _values(tokens))
    raise tokens.unexpected("one of = == != > < in notin")


def _values(tokens: _Tokens) -> list[str]:
    """A parenthesised list; a place left empty stands for the empty value."""
    tokens.take("(")
    values: set[str] = set()
    while True:
        values.add("" if tokens.ahead in {",", ")"} else tokens.word("a value or ')'"))
        if tokens.ahead == ")":
            tokens.words.pop()
            return sorted(values)
        tokens.take(",")


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Fields that must equal a value, or must not: `(path, value, equal)`."""

    terms: tuple[tuple[str, str, bool], ...] = ()

    def matches(self, field: Callable[[str], str]) -> bool:
        """Whether an object is selected; `field` gives the text of a path, empty where there is none."""
        return all((field(path) == value) is equal for path, value, equal in self.terms)

    def exact(self, path: str) -> str | None:
        """The value the selector pins a path to, if it does."""
        return next((value for name, value, equal in self.terms if equal and name == path), None)


def parse_field_selector(text: str) -> FieldSelector:
    r"""Parse `spec.nodeName=n1,status.phase!=Failed`; `\` escapes `,`, `=` and itself in values."""
    terms = []
    for term in _field_terms(text):
        split = _FIELD.fullmatch(term)
        if split is None:
            raise SelectorError(f"field selector '{text}': '{term}' must be FIELD=VALUE or FIELD!=VALUE")
        path, operator, value = split.groups()
        terms.append((path, _unescaped(text, value), operator != "!="))
    return FieldSelector(tuple(terms))


def _field_terms(text: str) -> list[str]:
    if (len(text) - len(text.rstrip("\\"))) % 2:
        raise SelectorError(f"field selector '{text}': ends in a lone backslash")
    return _FIELD_TERM.findall(text)


def _unescaped(text: str, value: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] is None or match[1] not in {"\\", ",", "="}:
            raise SelectorError(f"field selector '{text}': '{match[0]}' in a value must be one of \\, \\= \\\\")
        return match[1]

    return _ESCAPE.sub(replace, value)
