"""How English lays something down without the plain words for it: patterns, by what kind of rule it is."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLAUSE: Final = r"(?:\A|[,;:(\u2013\u2014] ?| - )"
_BEGIN: Final = rf"(?:{_CLAUSE}|\b(?:please|and|then|but|also|so|just|always|should|to|you|let's|or) )"
"""Where something is asked for: at the beginning of a sentence or a clause."""
_NUMBER: Final = r"(?:\$?[0-9]|(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|twelve|half|hundred)\b)"
_NOTHING_ASKED: Final = (
    r"(?:problem|ideas?|worr(?:y|ies)|doubt|luck|wonder|thank|need|way\b|matter|clue|rush|hurry|pressure|kidding|one\b"
    r"|i\b|it\b|that\b|this\b|you\b|we\b|they\b|he\b|she\b|there\b|the\b|not\b|just\b|wait\b|longer|errors?|changes?\b"
    r"|difference|effect|response|reply|answer|results?|output|success|jokes?\b|chance|reason|surprise|complaint"
    r"|objection|questions?|signs?\b|trace|news|progress|big deal|such|sense|offen[cs]e|sorry|go\b|deal\b|hits?\b"
    r"|match(?:es)?\b|more questions|further questions|warnings? (?:now|left)|idea)"
)
_TELLS: Final = (
    r"(?:is|are|was|were|has|have|had|did|does|do|found|failed|ran|seen|yet|so far|anymore|this time|either|works?"
    r"|worked|appears?|shows?|comes?|came|happens?|happened|left|here|there|again|still|today|either)"
)
_FORBIDDEN: Final = (
    (
        r"you (?:can't|cannot|can not|won't|(?:aren't|are not) (?:to|allowed|permitted|supposed)) "
        r"(?!see|tell|read|find|even|really|imagine|believe|know|hear|notice|miss|be\b)"
    ),
    (
        r"(?<!\bi )(?:can't|cannot|can not) (?:exceed|go (?:over|above|below|beyond)|take (?:more|longer)"
        r"|touch|change|modify|push|merge|deploy|delete|depend|afford|leave|break|include|contain"
        r"|be (?:more|less|larger|longer|bigger|smaller|higher|lower|over|above|under|below|changed|touched|modified"
        r"|removed|deleted|renamed|altered|moved|edited|merged|deployed|released|shared|public))\b"
    ),
    (
        r"(?:nobody|no one|none of (?:the|these|those|them|our|my)|nothing)(?: \w+){0,3}? "
        r"(?:may|can|should|must|shall|is allowed|are allowed|is to|are to)\b"
    ),
    r"nothing (?:but|goes|leaves|gets)\b",
    rf"{_CLAUSE}(?:and |but |also |please |absolutely )?no (?!{_NOTHING_ASKED})\w(?![^.;]*\b{_TELLS}\b)",
    r"(?:not|isn't|aren't) (?:permitted|acceptable|an option|negotiable|up for discussion|okay|ok) to\b",
    r"(?:is|are) not to be\b",
    r"(?:not permitted|not acceptable|not an option|non-?negotiable|unacceptable|disallowed|banned|taboo|verboten)\b",
    r"(?:no-go|out of (?:bounds|scope)|hands off|keep off|zero (?:tolerance|downtime|warnings?|dependencies))\b",
    rf"{_BEGIN}(?:stop|quit) (?!(?:be)?ing\b)\w{{2,20}}ing\b",
    (
        rf"{_BEGIN}leave (?:[^\s.;]+ ){{1,6}}?"
        r"(?:alone|as (?:is|it is|they are)|untouched|unchanged|intact|out|in place|be)\b"
    ),
    r"(?:rather|better|try|careful|care|sure|prefer) (?:you )?(?:not|to not|didn't)\b",
    r"(?:won't|will not) (?:accept|tolerate|allow|be (?:accepted|tolerated|merged))\b",
    r"(?:on no account|in no case|at no (?:time|point)|under no|by no means|no matter what|at all (?:times|costs))\b",
    r"(?:abstain from|steer clear|do without)\b",
)
_BOUNDS: Final = (
    rf"(?:max|maximum|minimum|min)\b\.?(?: of)?[:= ]{{1,3}}{_NUMBER}",
    (
        rf"{_NUMBER}\w*(?: [\w/]+){{0,3}} "
        r"(?:max|maximum|minimum|tops|at (?:the )?(?:most|least|latest)|or (?:less|fewer|more))\b"
    ),
    r"at the latest\b",
    r"(?:the|my|our) (?:max|maximum|minimum|limit|budget|cap|ceiling|deadline) (?:is|are|for)\b",
    (
        r"(?:stay|remain) (?:well )?"
        r"(?:under|below|within|above|inside|out of|away from|off|clear of|on the|compatible)\b"
    ),
    (
        rf"{_BEGIN}keep (?!\w+ing\b)(?:[^\s.;]+ ){{0,6}}?(?:under|below|within|above|at or|out of|away from|off|short"
        r"|small|simple|private|secret|intact|unchanged|compatible|as (?:is|it is|they are)|the same"
        r"|to (?:an?|one|two|the|at|under|[0-9]))\b"
    ),
    rf"{_BEGIN}(?:limit|restrict|cap|confine|constrain|reduce) (?:[^\s.;]+ ){{1,6}}?(?:to|at)\b",
    r"(?:limited|restricted|confined|reserved) (?:to|for)\b",
    (
        r"(?:not|n't) (?:go |be |take |cost |last |run )?(?:before|after|until|later than|earlier than|over|above"
        r"|beyond|without|under any|longer than|bigger than|larger than)\b"
    ),
    r"(?:any|nothing|none|no one|anything) (?:more|less|longer|larger|bigger|later|earlier|higher|lower) than\b",
    r"(?:as (?:few|little) as possible|within (?:the )?budget)\b",
)
_ORDERS: Final = (
    r"(?:has|have) to (?:be|stay|remain|pass|fit|match|comply|support|hold|keep)\b",
    r"you(?:'re| are) (?:to|expected to|obliged to)\b",
    r"(?:be sure|remember|take care|see to it|be careful) (?:to|that|not|with)\b",
    r"(?:it is|it's) (?:essential|important|crucial|critical|vital|imperative|forbidden)\b",
    r"(?:essential|crucial|imperative|vital) (?:that|to)\b",
    r"(?:i insist|exclusively|solely|strictly|without exception|under any circumstances|any circumstances)\b",
    r"(?:from (?:now|here) on|going forward|henceforth|(?:every|each) time you|whenever you|as a rule)\b",
    (
        rf"{_BEGIN}(?:use|write|call|name|take|put|run|install|import|pick|choose)\b[^.;]{{1,60}}, (?:and )?"
        r"not \w"
    ),
    rf"{_BEGIN}(?:use|prefer|choose|pick)\b[^.;]{{1,60}} (?:instead of|rather than|over)\b",
)
_LEAVE: Final = (
    (
        r"(?:before|prior to) [^.;]{1,60}?\b(?:ask|check with|confirm with|consult|warn|notify|inform|wait for"
        r"|let me know|talk to|tell me|show me|get (?:my|an?|the|approval|permission))\b"
    ),
    (
        r"(?:ask|check with|confirm with|consult|tell|warn|notify|inform|show|talk to|come back to|get|wait for)"
        r"(?: [^\s.;]+){1,6}? (?:before|first|beforehand|each time|every time|prior to)\b"
    ),
    (
        r"(?:until|till|unless|before|once|if) (?:i|we|i've|we've|they|he|she) (?:say|tell|approve|confirm|agree|allow"
        r"|sign|have said|have approved|said|approved|reviewed|give|okay|ok)\b"
    ),
    (
        r"(?:until further notice|until told|unless told|till told"
        r"|(?:wait|hold off|pause|hold)(?: \w+){0,4} (?:until|till|for my))\b"
    ),
    (
        r"(?:requires?|needs?|wait for|subject to|only with) (?:my|our|an?|explicit|written|the) ?(?:\w+ )?"
        r"(?:approval|permission|consent|sign-?off|confirmation|review|go-?ahead|okay|ok)\b"
    ),
    (
        r"without (?:[^\s.;]+ ){0,3}?"
        r"(?:asking|approval|permission|consent|confirmation|sign-?off|telling|checking|review)\b"
    ),
)

_ANY: Final = "|".join(f"(?:{kind})" for kind in (*_FORBIDDEN, *_BOUNDS, *_ORDERS, *_LEAVE))
_PLACE: Final = rf"(?:(?<!\w)|(?!\w))(?:{_ANY})"  # a place is looked at once, not for each
_KIND: Final = re.compile(_PLACE, re.IGNORECASE)
_LOWER: Final = re.compile(_PLACE)  # in a third of the time
_EMPHASIS: Final = re.compile(r"(?<!\w)[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}(?!\w)")


def lays_down(sentence: str) -> bool:
    """Whether a sentence, with plain apostrophes, is of one of these kinds; what is emphasised counts like all else."""
    plain = _EMPHASIS.sub("", sentence)
    found = _LOWER.search(plain.lower()) if plain.isascii() else _KIND.search(plain)
    return found is not None


def places_in(clause: str) -> Iterator[int]:
    """Where in a text they begin."""
    return (found.start() for found in _KIND.finditer(clause))
