"""The independent judge: a request body and a profile → what the target would refuse, in its own words.

    for violation in lint(body, target="mistral"):
        print(violation)

It shares no code with codecs and renderer, since it must be able to find them wrong, and imports only profiles, limits
and errors. `readers/<protocol>.py` builds a view of the request (`view.py`), `checks/<group>.py` checks the demands of
the profile on it, and `judging.py` runs both.
"""

from toolglot.referee.linting import Violation, lint

__all__ = ["Violation", "lint"]
