"""The independent judge: a wire body and a profile → what the target would refuse, in its own words.

    for violation in lint(body, target="mistral"):
        print(violation)

It shares no code with codecs and renderer, since it must be able to find them wrong, and imports only profiles, limits
and errors. `read_<protocol>.py` draws a picture of the request (`view.py`), `checks_<group>.py` check the demands of
the profile on it, `judging.py` joins them.
"""

from toolglot.referee.linting import Violation, lint

__all__ = ["Violation", "lint"]
