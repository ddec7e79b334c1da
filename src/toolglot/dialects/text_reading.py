"""How one text is read: a generator that looks for marks, and lets the dialects try what follows.

`text_stream.TextToolStream` drives it, and owns this object and the generator. This object has no reference to the
generator, so an unfinished text is freed together with its stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable
from functools import lru_cache
from typing import Final, NamedTuple, cast
from weakref import WeakMethod

from toolglot.dialects.dialect import THINK, Dialect, any_inside, inside_of, is_special
from toolglot.dialects.lookahead import next_of
from toolglot.dialects.reading import OUTCOMES, DialectReader, Outcome, Schemas
from toolglot.dialects.registry import own_dialects
from toolglot.dialects.scanner import Marks, Sink, Steps, discard, marks
from toolglot.errors import InputError, quote

AHEAD: Final = 64
"""Characters behind an opener that decide which dialect is meant."""
MAX_GUESS: Final = 4096
"""Characters that are held back until the name of a call is known, where ordinary text could look the same; and
characters of anything that are read again if it is not a call."""
MAX_WAIT: Final = 256 * 1024
"""The same for text that has marks of its own."""
ATTEMPT: Final = 64
"""Characters that looking for a call is worth, if there is none. In a text of openers most of them are text unread: the
work grows with the characters, whatever the text is."""
MAX_SPENT: Final = 256 * ATTEMPT
"""How far that may be ahead of the characters that were read."""
MAX_DRAFT: Final = 256 * 1024
"""Characters of a thought that are held back after what looks like a call. Anything longer is a thought."""
_TICK: Final = "`"
_TILDES: Final = "~~~"
_TICKS: Final = {_TICK: re.compile("`+"), "~": re.compile("~+")}
_MIN_FENCE: Final = 3
_MAX_TICKS: Final = 32
_MAX_EMPTY: Final = 8
"""Marks that a section with nothing in it may begin with."""
_BLANKS: Final = re.compile(r"[ \t]+")
_MAX_BLANKS: Final = 64
"""White space around the end of a fence, on its line."""
_INDENT: Final = 16
_IS_MARK: Final = re.compile(r"[^\w\s`]\S{2}").match
"""What a mark that no thought has begins with."""
_IN_SENTENCE: Final = re.compile(r"[\w,;] \Z|[\"'(“]\Z")
_SENTENCE_GOES_ON: Final = frozenset(" .,;:!?)\"'”")


class _Opener(NamedTuple):
    """What is known of an opener."""

    dialects: tuple[tuple[Dialect, Callable[[str], object] | None], ...]
    """Each with a matcher of what follows."""
    is_marked: bool
    """Whether no ordinary text has it."""
    is_closer: bool
    closers: tuple[str, ...]
    """What ends its section."""
    openers: tuple[str, ...]
    """What else may be in a section without calls."""
    run: Callable[[str, int], re.Match[str]]
    """Matches some of these, with the white space around them."""

    def may_be_empty(self, text: str, at: int) -> bool:
        """Whether the section may hold only marks, as far as the text is known."""
        end = self.run(text, at).end()
        return len(text) - end < AHEAD or text.startswith(self.closers, end)


@lru_cache(maxsize=1024)
def _is_marked(opener: str) -> bool:
    """Whether no ordinary text has an opener."""
    return _IS_MARK(opener) is not None


@lru_cache(maxsize=1024)
def _run_of(openers: tuple[str, ...]) -> Callable[[str, int], re.Match[str]]:
    """A matcher of some openers, with the white space around them."""
    listed = "|".join(map(re.escape, openers)) or "(?!)"
    pattern = re.compile(rf"(?:\s*+(?:{listed})){{0,{_MAX_EMPTY}}}+\s*+")
    return cast("Callable[[str, int], re.Match[str]]", pattern.match)


class TextReading:
    """The reading of one text.

    dialects: those whose calls are looked for.
    is_auto: whether the dialect is to be detected.
    model: the name of the model, whose own dialects end its thoughts.
    schemas: the tools that were offered.
    ids: goes into the ids that are made.
    only_offered: whether a call of any other tool is text.
    starts_thinking: whether the text begins inside of thinking.
    """

    def __init__(
        self,
        dialects: tuple[Dialect, ...],
        *,
        is_auto: bool,
        model: str,
        schemas: Schemas,
        ids: str,
        only_offered: bool,
        starts_thinking: bool,
    ) -> None:
        self._only_offered = only_offered
        self._is_auto = is_auto
        self._dialects = dialects
        self._reader = DialectReader(schemas, id_stem=ids)
        self._reader.is_chosen = not is_auto
        self._reader.thinker = WeakMethod(self._think_until)
        self.scanner, self.output = self._reader.scanner, self._reader.output
        self._openers = _by_opener(self._dialects)
        self._inside = {opener: any_inside(*(each.inside for each in found)) for opener, found in self._openers.items()}
        self._thinking = {opener: closer for each in self._dialects for opener, closer in each.thinking}
        self._starts_thinking = starts_thinking
        self._code_marks = (_TICK, _TILDES) if self._is_auto else ()
        own = own_dialects(self._dialects, model) if self._is_auto else self._dialects
        self._thought_ends = tuple(dict.fromkeys(end for each in own for end in each.thought_ends))
        self._skipped = {mark: inside for mark, inside in self._inside.items() if mark not in self._code_marks}
        self._call_marks = _call_marks(self._dialects)
        self._closers = {each.name: self._dropped_closers(each) for each in self._dialects}
        self._line_openers = [opener[1:] for opener in self._openers if opener.startswith("\n")]
        self._thoughts: dict[tuple[str, ...], tuple[tuple[str, ...], tuple[str, ...], set[str], Marks]] = {}
        self._facts: dict[str, _Opener] = {}
        """What is known of the openers that were found."""
        self._fenced: dict[str, dict[str, str]] = {}
        """Openers that begin with a fence, by the fence and by what comes after it."""
        self._spent = {True: 0, False: 0}
        """What looking for calls took so far: behind marks that no ordinary text has, and behind others."""
        self._no_calls: set[str] = set()
        """Openers of what was not a call."""
        self._refused: set[str] = set()
        """Closers of what was not a call: they stay text."""
        stray = [closer for closers in self._closers.values() for closer in closers]
        self._stray = frozenset(stray).difference(self._openers, self._thinking)
        wanted = [opener for opener in self._openers if not opener.startswith(self._code_marks or "\0")]
        self._marks = marks(*wanted, *self._thinking, *self._code_marks, *self._stray)
        self.found: list[str] = []
        """The dialects whose calls were found, in their order."""
        self.dropped: list[str] = []
        """The marks that were dropped because they mean nothing."""
        self.draft: str = ""
        """The rest of the text, from a call that ended a thought that was never closed. If the text was cut off, the
        thought may have gone on."""
        self.is_marked: bool = False
        """Whether the first of them had a mark that ordinary text does not have."""

    def read(self) -> Steps[None]:
        scanner, output = self.scanner, self.output
        if self._starts_thinking:
            yield from scanner.one_of(self._thinking)  # the opening mark, if the model repeats the prompt's
            yield from self._read_thought(*self._thinking.values())
        else:  # the end of an empty thought that the prompt opened
            yield from next_of(scanner, self._thinking.values())
        for opener in () if self._is_auto else self._dialects[0].prompted:
            yield from self._candidate(opener, "")
        yield from self._line_start()
        while True:
            self._skip_no_calls()
            found = yield from scanner.until(self._marks, output.add_text)
            if found is None:
                return
            closer = self._thinking.get(found) if found not in self._openers else None
            if closer is not None and (yield from self._is_mentioned()):
                output.add_text(found)
            elif closer is not None:
                yield from self._read_thought(closer)
                yield from self._line_start()
            elif found in self._code_marks:
                yield from self._code(found, output.add_text)
            elif found in self._stray:
                if found in self._refused or (yield from self._is_mentioned(is_closer=True)):
                    output.add_text(found)
                else:
                    self.dropped.append(found)
            elif self._is_no_call(found):
                self._refuse(found)
                output.add_text(found[:1] if found.startswith("\n") else found)
                scanner.at -= len(found) - 1 if found.startswith("\n") else 0
            else:
                if found.startswith("\n"):
                    output.add_text("\n")
                yield from self._candidate(found, found.removeprefix("\n"))

    def _is_no_call(self, opener: str) -> bool:
        """Whether enough text has arrived behind an opener to see that it fits no dialect."""
        scanner = self.scanner
        ahead = scanner.text[scanner.at : scanner.at + AHEAD]
        looked_for = self._inside[opener]
        return looked_for is not None and len(ahead) == AHEAD and looked_for(ahead) is None

    def _skip_no_calls(self) -> None:
        """Pass on the text up to the first mark that may mean something. A text may consist of openers alone, so that
        each must cost next to nothing.
        """
        scanner, spent, find = self.scanner, self._spent, self._marks.find
        text, at = scanner.text, scanner.at
        start, last, enough = at, len(text) - AHEAD, scanner.fed - len(text) + MAX_SPENT
        is_spent, insides, refused = max(spent.values()) > enough + at, self._skipped, self._no_calls
        while (found := find(text, at)) is not None:
            opener, end = found[0], found.end()
            if opener not in insides:
                break
            if not is_spent or spent[_is_marked(opener)] <= enough + end:
                looked_for = insides[opener]
                if looked_for is None or end > last or looked_for(text[end : end + AHEAD]) is not None:
                    break
            if opener not in refused:
                self._refuse(opener)
            at = found.start() + 1 if opener[0] == "\n" else end
        if at > start:
            self.output.add_text(text[start:at])
            scanner.at = at

    def _read_thought(self, *closers: str) -> Steps[None]:
        yield from self._think_until(closers)
        self.output.end_thinking()

    def _think_until(self, closers: tuple[str, ...]) -> Steps[str | None]:
        """Write thinking up to one of the closers, which is read, or up to a call if there is none. Returns the closer;
        empty for a call, None for neither."""
        scanner, add_thinking = self.scanner, self.output.add_thinking
        ends, stops, calls, wanted = self._marks_of_thought(closers)
        is_unclosed = False
        while True:
            found = yield from scanner.until(wanted, add_thinking)
            if found is not None and found in self._code_marks:
                found = (yield from self._code(found, add_thinking, stops)) or ""
            elif found in calls:
                end = None if is_unclosed else (yield from self._end_of_draft(found, stops))
                if end is None and not is_unclosed:
                    is_unclosed, self.draft = True, f"{found}{scanner.text[scanner.at :]}"
                if (
                    end is None
                    and (yield from self._candidate(found, found, add_thinking))
                    and not self.output.is_thinking
                ):
                    return ""
                found = end or ""
            if found and found in ends:
                scanner.at -= len(found)  # it begins a call
                return ""
            if found != "":
                return found

    def _marks_of_thought(self, closers: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...], set[str], Marks]:
        """What ends a thought besides its closers, both, the marks of calls in it, and all that is looked for."""
        found = self._thoughts.get(closers)
        if found is None:
            ends = self._ends_of_thought(closers)
            stops = (*closers, *ends)
            calls = [mark for mark in self._call_marks if not mark.startswith(stops)]
            found = self._thoughts[closers] = (ends, stops, set(calls), marks(*stops, *calls, *self._code_marks))
        return found

    def _ends_of_thought(self, closers: tuple[str, ...]) -> tuple[str, ...]:
        """Openers that end a thought with these closers: those of the model's own dialect, or of the only dialect with
        such thoughts."""
        whose = (
            each for each in self._dialects if any(own[1] in closers and own not in THINK for own in each.thinking)
        )
        return tuple(dict.fromkeys((*self._thought_ends, *(end for each in whose for end in each.thought_ends))))

    def _end_of_draft(self, opener: str, stops: tuple[str, ...]) -> Steps[str | None]:
        """Write the rest of a thought in which a call seems to begin, and read its end. Returns the end; empty if it is
        too far away; None, with nothing read, if there is none."""
        scanner, add_thinking = self.scanner, self.output.add_thinking
        scanner.mark()
        steps = scanner.until(marks(*stops), discard)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                found: str | None = done.value
                break
            if scanner.size_since_mark() > MAX_DRAFT:
                found = ""
                break
            yield
        kept = scanner.since_mark()
        size = len(kept) - len(found or "")
        if found is None and size <= MAX_DRAFT:
            scanner.go_back()
            return None
        scanner.unmark()
        add_thinking(opener + kept[: min(size, MAX_DRAFT)])
        if size > MAX_DRAFT:
            scanner.put_back(kept[MAX_DRAFT:])
            return ""
        return found

    def _line_start(self) -> Steps[None]:
        """Openers that count only at the start of a line also count at the start of the text, and after a thought."""
        at_start = self._line_openers
        found = (yield from self.scanner.one_of(at_start)) if at_start else None
        if found is not None:
            yield from self._candidate(f"\n{found}", found)

    def _code(self, mark: str, emit: Sink, stops: tuple[str, ...] = ()) -> Steps[str | None]:
        """Read code, from behind its first mark: it is text, whatever it holds. Returns the stop that was read before
        the code ended, if any."""
        scanner = self.scanner
        is_text = mark == _TILDES and not (stops or self._is_line_start())
        ticks = mark + (yield from scanner.while_in(_TICKS[mark[0]], _MAX_TICKS))
        if is_text:
            emit(ticks)
            return None
        is_emitted = False
        if len(ticks) == _MIN_FENCE and not stops:
            fenced = self._fenced_openers(ticks)
            word = (yield from scanner.one_of(fenced)) if fenced else None
            if word is not None:
                if (yield from self._candidate(fenced[word], fenced[word])):
                    return None
                is_emitted = True
        if not is_emitted:
            emit(ticks)
        ends = ("\n",) if mark == _TILDES else (ticks, "\n")
        found = yield from scanner.until(marks(*ends, *stops), emit)
        if found is None or found in stops:
            return found
        emit(found)
        if found == "\n" and len(ticks) >= _MIN_FENCE:
            return (yield from self._fenced_lines(ticks, emit, stops))
        return None

    def _fenced_openers(self, ticks: str) -> dict[str, str]:
        found = self._fenced.get(ticks)
        if found is None:
            found = {opener.removeprefix(ticks): opener for opener in self._openers if opener.startswith(ticks)}
            self._fenced[ticks] = found
        return found

    def _fenced_lines(self, ticks: str, emit: Sink, stops: tuple[str, ...]) -> Steps[str | None]:
        """The lines of a fence, up to one that holds nothing but its end."""
        scanner = self.scanner
        while True:
            line = yield from scanner.while_in(_BLANKS, _MAX_BLANKS)
            run = yield from scanner.while_in(_TICKS[ticks[0]], 4 * _MAX_TICKS)
            line += run
            if len(run) >= len(ticks):
                line += yield from scanner.while_in(_BLANKS, _MAX_BLANKS)
                if (yield from scanner.peek()) in ("", "\n", "\r"):
                    emit(line)
                    return None
            if line:
                emit(line)
            found = yield from scanner.until(marks("\n", *stops), emit)
            if found is None or found in stops:
                return found
            emit(found)

    def _is_line_start(self) -> bool:
        """Whether there is only white space before, on this line."""
        before = self.output.last_text(_INDENT)
        return not before.rpartition("\n")[2].strip() and ("\n" in before or len(before) < _INDENT)

    def _candidate(self, opener: str, shown: str, emit: Sink | None = None) -> Steps[bool]:
        """Read what follows an opener: a call, or, together with the opener, text or whatever `emit` makes of it. An
        opener that counts only at the start of a line may begin with another."""
        reader, scanner = self._reader, self.scanner
        begins = len(shown) if opener.startswith("\n") else 0
        facts, spent = self._facts_of(opener), self._spent
        if spent[facts.is_marked] > scanner.position + MAX_SPENT:
            self._refuse(opener)
            scanner.at -= begins
            if not begins:
                (emit or self.output.add_text)(shown)
            return False
        spent[facts.is_marked] += ATTEMPT
        scanner.at -= begins
        scanner.mark()
        scanner.at += begins
        reader.is_mentioned = yield from self._is_mentioned(is_closer=facts.is_closer)
        dialect: Dialect | None = None
        outcome: Outcome = "none"
        is_weak = False
        if not (reader.is_mentioned or opener in self._refused) and (yield from self._is_empty_section(facts, begins)):
            scanner.unmark()
            self.dropped.append(opener)
            return True
        for dialect in (yield from self._matching_dialects(facts)):
            if outcome == "none" and scanner.size_since_mark() > begins:  # not what the dialect before took it for
                scanner.go_back()
                scanner.mark()
                scanner.at += begins
            is_weak = dialect.is_weak and opener not in dialect.strong
            reader.only_offered = self._only_offered or (is_weak and (self._is_auto or bool(reader.tools)))
            reader.limit = MAX_GUESS if is_weak else MAX_WAIT
            outcome = yield from self._attempt(dialect, opener)
            if outcome != "none" or not scanner.is_marked or scanner.size_since_mark() > MAX_GUESS:
                break
        is_word = reader.is_mentioned or opener in self._refused
        if outcome == "passed" and is_word and scanner.is_marked:
            outcome = "none"  # a mark without meaning, as a word of a sentence, or of what was not a call
        if dialect is None or outcome in ("none", "unfinished"):
            self._refuse(opener)
            self._emit_as_text(
                "" if begins else shown, reader.limit, emit or self.output.add_text, is_marked=facts.is_marked
            )
            return False
        if outcome == "passed" and scanner.is_marked:
            self.dropped.append(opener)
        scanner.unmark()
        if outcome != "passed":
            spent[facts.is_marked] -= ATTEMPT
            self.is_marked = self.is_marked if self.found else not is_weak
            self.found.append(dialect.name)
        return True

    def _refuse(self, opener: str) -> None:
        """What the opener begins is not a call: its closers are text too."""
        if opener in self._no_calls:
            return
        self._no_calls.add(opener)
        self._refused.update(closer for each in self._openers[opener] for closer in self._closers[each.name])

    def _dropped_closers(self, dialect: Dialect) -> tuple[str, ...]:
        return tuple(each for each in dialect.closers if is_special(each) or not self._is_auto)

    def _facts_of(self, opener: str) -> _Opener:
        facts = self._facts.get(opener)
        if facts is not None:
            return facts
        found = self._openers[opener]
        closers = dict.fromkeys(each for own in found for each in self._closers[own.name])
        others = (each for own in found for each in own.openers if each not in closers and _IS_MARK(each))
        openers = tuple(dict.fromkeys(others))
        made = self._facts[opener] = _Opener(
            dialects=tuple((each, inside_of(each)) for each in found),
            is_marked=_is_marked(opener),
            is_closer=any(opener in each.closers for each in found),
            closers=tuple(closers),
            openers=openers,
            run=_run_of(openers),
        )
        return made

    def _is_empty_section(self, facts: _Opener, begins: int) -> Steps[bool]:
        """Read the rest of a section that holds only marks; if it holds more, nothing is read."""
        scanner, closers, openers = self.scanner, facts.closers, facts.openers
        if not closers or not facts.may_be_empty(scanner.text, scanner.at):
            return False
        start, is_closed = scanner.size_since_mark(), False
        for _ in range(_MAX_EMPTY):
            found = yield from next_of(scanner, (*closers, *openers))
            if found in closers:
                openers, is_closed = (), True
            elif not found:
                break
        if is_closed:
            return True
        if scanner.size_since_mark() == start:
            return False
        scanner.go_back()
        scanner.mark()
        scanner.at += begins
        return False

    def _is_mentioned(self, *, is_closer: bool = False) -> Steps[bool]:
        """Whether a mark is inside a sentence about it. Only if the dialect is to be detected, or for a closer."""
        scanner = self.scanner
        if not (self._is_auto or is_closer) or not _IN_SENTENCE.search(self.output.last_text()):
            return False
        yield from scanner.need(1)
        return scanner.text[scanner.at : scanner.at + 1] in _SENTENCE_GOES_ON

    def _matching_dialects(self, facts: _Opener) -> Steps[list[Dialect]]:
        """The dialects whose calls look like what follows."""
        scanner = self.scanner
        if any(inside is not None for _, inside in facts.dialects):
            yield from scanner.need(AHEAD)
        ahead = scanner.text[scanner.at : scanner.at + AHEAD]
        return [each for each, inside in facts.dialects if inside is None or inside(ahead) is not None]

    def _attempt(self, dialect: Dialect, opener: str) -> Steps[Outcome]:
        """Let a dialect read, as long as what it read can be kept."""
        reader = self._reader
        steps = dialect.read(reader, opener)
        if not isinstance(steps, Generator):
            raise InputError(f"the read of the dialect {dialect.name} is not a generator function", path="dialect.read")
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return _outcome(done.value, dialect)
            if not reader.has_open_call and reader.scanner.size_since_mark() > reader.limit:
                return "none"
            yield

    def _emit_as_text(self, opener: str, limit: int, emit: Sink, *, is_marked: bool) -> None:
        """Emit what was read as text. A mark inside it may still begin a call, unless it is too long to be read again.

        What is too long is text up to the limit, wherever the piece ended that exceeded it.
        """
        scanner = self.scanner
        if opener:
            emit(opener)
        size = scanner.size_since_mark()
        if size > MAX_GUESS:
            kept = scanner.since_mark()
            length = min(size, limit)
            emit(kept[:length])
            scanner.unmark()
            scanner.put_back(kept[length:])
        else:
            self._spent[is_marked] += size
            scanner.go_back()


def _outcome(returned: object, dialect: Dialect) -> Outcome:
    """Check what a dialect returned; it may be a user's."""
    if returned not in OUTCOMES:
        hint = f"one of {', '.join(sorted(OUTCOMES))}"
        raise InputError(f"the dialect {dialect.name} returned {quote(returned)}", path="dialect.read", hint=hint)
    outcome: Outcome = returned  # type: ignore[assignment]
    return outcome


def _call_marks(dialects: Iterable[Dialect]) -> tuple[str, ...]:
    """The openers that no thought and no ordinary text has."""
    thought = {mark for each in dialects for pair in each.thinking for mark in pair}
    found = (mark for each in dialects for mark in (each.strong if each.is_weak else each.openers))
    return tuple(dict.fromkeys(mark for mark in found if mark not in thought and _IS_MARK(mark)))


def _by_opener(dialects: Iterable[Dialect]) -> dict[str, list[Dialect]]:
    found: dict[str, list[Dialect]] = {}
    for dialect in dialects:
        for opener in dialect.openers:
            found.setdefault(opener, []).append(dialect)
    return found
