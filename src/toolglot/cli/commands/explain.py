"""`toolglot explain`: a rule, which providers have it, its source, and an example with its repair."""

from __future__ import annotations

import argparse
import difflib
import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from toolglot import profiles
from toolglot.cli import targets
from toolglot.cli.files.documents import pretty
from toolglot.cli.options import add_profiles
from toolglot.cli.screen.diff import show_diff
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean
from toolglot.errors import InputError, quote
from toolglot.profiles import KEYS, Fact, Overrides, Profile, Rule
from toolglot.profiles.rule_index import NamedRule, all_rules, default_of, description_of

MAX_LINES: Final = 60
"""Lines of an example that are printed."""
MAX_VALUE: Final = 90

_SHAPE: Final = """\
'shape' is not the rule of one provider: the body does not follow the protocol. A field has the wrong type, a block has
no type, or there is a list instead of an object. The message says what is wrong, and the path says where."""

_CONFIDENCE: Final = {
    "documented": "the provider says so",
    "observed": "seen in the provider's responses",
    "guess": "assumed; not confirmed",
    "user": "your own profile says so",
    "default": "not documented: the conservative default",
}

_ACCEPTS: Final = "the target is known to accept this; requests written for it are checked against this instead"
_ASSUMED: Final = "only for requests from other protocols, not for requests written for this target"

_DESCRIPTION: Final = """\
Explain a rule that 'toolglot lint' named: what it demands, which providers have it and with what value, their error
message, the source, and how reliable that is. If there is a small example, it is linted and repaired. If a target is
known to accept more than its rule says, 'accepts' shows what. Requests that were written for that target are checked
against that instead.

RULE is the id of a rule (mistral-id-nine), or a key of the profiles (ids.pattern)."""

_EPILOG: Final = """\
examples:
  toolglot explain mistral-id-nine
  toolglot explain results.complete
  toolglot explain --list --for anthropic
  toolglot explain --list | grep schema

exit codes: 0 success; 2 unknown rule
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("rule", nargs="?", metavar="RULE", help="the id of a rule, or a key of the profiles")
    parser.add_argument("--list", action="store_true", help="list rules instead: id, key, value and confidence")
    parser.add_argument(
        "--for", dest="target", metavar="TARGET[@MODEL]", help="with --list: only the rules of this target"
    )
    parser.add_argument("--format", choices=("text", "json"), default="text", help="output format (default: text)")
    add_profiles(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    overrides = targets.read_overrides(arguments)
    if arguments.list:
        _list(arguments, overrides, terminal)
        return 0
    if not arguments.rule:
        raise InputError("expected a rule", path="explain", hint="toolglot explain RULE, or toolglot explain --list")
    if arguments.rule == "shape":
        terminal.out.line(_SHAPE)
        return 0
    _Explanation(arguments.rule, overrides).show(terminal, as_json=arguments.format == "json")
    return 0


# --- the list ---------------------------------------------------------------------------------------


def _list(arguments: argparse.Namespace, overrides: Overrides | None, terminal: Terminal) -> None:
    rows = list(_rows(arguments.target, overrides))
    if arguments.format == "json":
        names = ("id", "key", "value", "confidence")
        terminal.write_data(pretty([dict(zip(names, row, strict=True)) for row in rows]))
        return
    shown = [(id, key, confidence, describe_value(value)) for id, key, value, confidence in rows]
    terminal.out.table(shown, heading=("RULE", "KEY", "CONFIDENCE", "VALUE"))


def _rows(target: str | None, overrides: Overrides | None) -> Iterator[tuple[str, str, Any, str]]:
    if target:
        wanted = targets.parse_target(target, "--for", overrides)
        profile = profiles.get(wanted.name, wanted.model, overrides=overrides)
        rules = (profile.origin(key) for key in KEYS if key in profile.origins)
        yield from ((rule.id, rule.key, rule.value, rule.confidence) for rule in rules)
        yield from ((fact.id, "(fact)", fact.text, fact.confidence) for fact in profile.facts)
        return
    for named in all_rules(overrides):
        entry = named.entry
        if isinstance(entry, Rule):
            yield entry.id, entry.key, entry.value, entry.confidence
        else:
            yield entry.id, "(fact)", entry.text, entry.confidence


# --- one rule ---------------------------------------------------------------------------------------


class _Explanation:
    """The explanation of one rule, key or fact."""

    def __init__(self, rule: str, overrides: Overrides | None) -> None:
        self.overrides = overrides
        known = all_rules(overrides)
        self.named = [named for named in known if named.entry.id == rule]
        key = rule.removeprefix("default:")
        if not self.named and key not in KEYS:
            raise _unknown(rule, [named.entry.id for named in known])
        first = self.named[0].entry if self.named else None
        self.rule = first if isinstance(first, Rule) else None
        self.fact = first if isinstance(first, Fact) else None
        self.key = self.rule.key if self.rule is not None else "" if self.fact is not None else key
        self.requested = rule

    def show(self, terminal: Terminal, *, as_json: bool) -> None:
        if as_json:
            terminal.write_data(pretty(self._as_json()))
            return
        page = terminal.out
        page.line(page.paint(self.requested, "bold"))
        if self.fact is not None:
            page.paragraph(clean(self.fact.text), indent="  ")
        else:
            page.paragraph(description_of(self.key), indent="  ")
        page.line()
        self._show_evidence(page)
        if self.key:
            self._show_enforcers(page)
        self._show_example(page)

    def _show_evidence(self, page: TerminalPage) -> None:
        if self.key:
            _pair(page, "key", self.key)
        for named in self.named:
            entry = named.entry
            models = f" (models that match {named.match})" if named.match else ""
            _pair(page, "target", f"{named.target}{models}")
            if isinstance(entry, Rule):
                _pair(page, "value", describe_value(entry.value))
                if entry.accepts is not msgspec.UNSET:
                    _pair(page, "accepts", f"{describe_value(entry.accepts)}: {_ACCEPTS}")
            _pair(page, "says", entry.error)
            _pair(page, "source", entry.source + (" (needs a recheck)" if entry.recheck else ""))
            _pair(page, "confidence", f"{entry.confidence}: {_CONFIDENCE[entry.confidence]}")
            _pair(page, "note", entry.note if isinstance(entry, Rule) else "")
            _pair(page, "assumed", _ASSUMED if isinstance(entry, Rule) and entry.assumed else "")
        if self.key:
            _pair(page, "default", describe_value(default_of(self.key)))
        page.line()

    def enforcers(self) -> list[Rule]:
        """The rules of all targets for the key. `layer` of each rule is its target here."""
        found = []
        for name in targets.known_names(self.overrides):
            profile = profiles.get(name, overrides=self.overrides)
            if self.key in profile.origins:
                found.append((name, profile.origin(self.key)))
        return [_of_target(rule, name) for name, rule in found]

    def _show_enforcers(self, page: TerminalPage) -> None:
        rules = self.enforcers()
        if not rules:
            page.line("No target has a rule for this key. The default applies.")
        else:
            rows = [(rule.layer, rule.id, rule.confidence, describe_value(rule.value), _own(rule)) for rule in rules]
            if any(own for *_, own in rows):
                page.table(rows, heading=("TARGET", "RULE", "CONFIDENCE", "VALUE", "ITS OWN REQUESTS"))
            else:
                page.table([row[:-1] for row in rows], heading=("TARGET", "RULE", "CONFIDENCE", "VALUE"))
        page.line()

    def _example(self) -> tuple[Profile, Any] | None:
        from toolglot.cli.files.rule_examples import example_of  # noqa: PLC0415 - it needs the codecs and the referee

        for rule, profile, model in self._candidates():
            example = example_of(rule, profile, model, self.overrides)
            if example is not None:
                return profile, example
        return None

    def _candidates(self) -> Iterator[tuple[str, Profile, str]]:
        """Rules and targets to try for an example: the rule itself first, then others with its key."""
        for named in self.named:
            model = _model_for(named.match)
            for name in (named.target, *self._inheriting_targets(named)):
                yield named.entry.id, profiles.get(name, model, overrides=self.overrides), model
        if not self.named:
            for rule in self.enforcers():
                yield rule.id, profiles.get(rule.layer, overrides=self.overrides), ""

    def _inheriting_targets(self, named: NamedRule) -> list[str]:
        """Targets that inherit the rule from the profile that they extend."""
        if named.target != profiles.ANY_HOST:
            return []
        return [rule.layer for rule in self.enforcers() if rule.id == named.entry.id] if self.key else []

    def _show_example(self, page: TerminalPage) -> None:
        found = self._example()
        if found is None:
            page.line(page.paint(self._why_no_example(), "dim"))
            return
        profile, example = found
        page.line(page.paint(f"Example: a request that {profile.name} refuses", "bold"))
        lines = json.dumps(example.body, ensure_ascii=False, indent=2).split("\n")
        for line in lines[:MAX_LINES]:
            page.line(f"  {clean(line)}")
        if len(lines) > MAX_LINES:
            page.line(f"  (… {len(lines) - MAX_LINES} more lines)")
        page.line()
        violation = example.violation
        page.paragraph(f"{violation.path}: {clean(violation.message)}", indent="  ", first="  lint: ")
        if example.repaired is None:
            page.paragraph(f"cannot be repaired: {clean(example.refusal)}", indent="  ")
            return
        page.line()
        page.line(page.paint("Repaired" + ("" if example.is_repaired else " (still refused)"), "bold"))
        show_diff(example.body, example.repaired, "request.json", page)

    def _why_no_example(self) -> str:
        if self.rule is not None and _own(self.rule):
            return f"No example: requests that were written for {self.rule.layer} are not checked against this value."
        return "There is no built-in example for this rule."

    def _as_json(self) -> dict[str, Any]:
        found = self._example()
        example = None
        if found is not None:
            profile, shown = found
            example = {"target": profile.name, **msgspec.to_builtins(shown)}
        return {
            "asked": self.requested,
            "key": self.key or None,
            "description": description_of(self.key) if self.key else self.fact.text if self.fact else "",
            "default": default_of(self.key) if self.key else None,
            "rules": [
                {"target": named.target, "match": named.match, **_rule_json(named.entry)} for named in self.named
            ],
            "enforced_by": [{"target": rule.layer, **_rule_json(rule)} for rule in self.enforcers()]
            if self.key
            else [],
            "example": example,
        }


def _own(rule: Rule) -> str:
    """The value for requests that were written for the target; empty if it is the same."""
    if rule.accepts is not msgspec.UNSET:
        return describe_value(rule.accepts)
    return "not checked" if rule.assumed else ""


def _of_target(rule: Rule, name: str) -> Rule:
    return replace(rule, layer=name)


def _rule_json(entry: Rule | Fact) -> dict[str, Any]:
    fields = {name: getattr(entry, name) for name in entry.__struct_fields__ if name != "layer"}
    if fields.get("accepts") is msgspec.UNSET:
        del fields["accepts"]
    return {name: value for name, value in fields.items() if name in ("value", "accepts") or value not in ("", False)}


def _pair(page: TerminalPage, name: str, text: str) -> None:
    if text:
        page.paragraph(clean(text), indent=" " * 14, first=f"  {name:<12}")


def _model_for(match: str) -> str:
    """A model name that matches a layer's pattern, if the pattern is a plain word."""
    plain = match.replace("\\", "").strip("^$")
    word = plain.partition("|")[0].strip("()?:")
    return word if word and all(char.isalnum() or char in "-._/" for char in word) else ""


def _unknown(name: str, ids: list[str]) -> InputError:
    words = [*dict.fromkeys(ids), *KEYS, "shape"]
    close = difflib.get_close_matches(name[:80], words, n=3, cutoff=0.5)
    within = [word for word in words if name and name in word][:3]
    guesses = list(dict.fromkeys([*close, *within]))[:3]
    hint = f"did you mean {' or '.join(guesses)}?" if guesses else "toolglot explain --list shows all rules"
    return InputError(f"unknown rule {quote(name)}", path="explain", hint=hint)


def describe_value(value: Any) -> str:
    """A profile value on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple | list):
        text = ", ".join(map(str, value)) or "(none)"
    else:
        text = str(value) if value != "" else '""'
    text = clean(text)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"
