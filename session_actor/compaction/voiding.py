"""Whether a text says that rules, decisions or assumptions hold no more: nothing in a summary can take them back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .disguises import as_seen
from .texts import apostrophes, folded, sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

_LAWS: Final = (
    r"(?:rules?|constraints?|restrictions?|instructions?|limits?|limitations?|requirements?|prohibitions?|decisions?"
    r"|assumptions?|guidelines?|guard ?rails?|polic(?:y|ies)|directives?|bans?|commitments?)"
)
_WHICH: Final = (
    r"(?:all|any|every|each|these|those|this|that|your|my|our|his|her|their|previous|prior|earlier|above|below|former"
    r"|following|preceding|foregoing|listed|old|existing|current|other|remaining|said|such|both|safety|system|user'?s"
    r"|standing|given|stated|aforementioned|original|named|first|second|third|fourth|fifth|last|two|three|four|five)"
)
_BESIDE: Final = r"(?:the|of|and|or|user|what|them|but|except)"
_WHERE: Final = (
    r"(?:above|below|here|so far|before|earlier|listed|given|stated|mentioned|in (?:this|the) (?:summary|section|list)"
    r"|(?:of|by|from) the user|(?:the user|you|i|we) (?:gave|set|made|listed)|under [\"'#* ]*(?:constraints|decisions"
    r"|assumptions)[\"'*]*)"
)
_NAMED: Final = (
    rf"(?:(?:(?:{_WHICH}|{_BESIDE})[ ,/]+){{0,5}}{_WHICH}[ ,/]+(?:(?:{_WHICH}|{_BESIDE})[ ,/]+){{0,3}}"
    rf"(?:\w+ (?:and|or) )?{_LAWS}(?: {_WHERE})*"
    rf"|(?:the )?{_LAWS}(?: {_WHERE}){{1,3}}|(?:everything|anything|all|what(?:ever)?(?: is| was| stands)?) {_WHERE}"
    r"|the (?:above|below|foregoing|preceding|following))"
)
"""All rules, these rules, the rules above: what is named as those of the summary."""
_BARE: Final = (
    r"(?:(?:^|(?<=[,;:.]) ?|\bthe )(?:rules|constraints|restrictions|prohibitions|decisions|assumptions)"
    r"(?: (?:section|list|part|heading)s?)?)"
)
"""The rules, without a word more."""
_OF_SOMETHING: Final = (
    rf"(?:the |a )?(?:user'?s )?{_LAWS}(?: (?:no\.? ?|number )?[0-9]{{1,3}})?"
    r"(?: (?:about|on|of|for|against|regarding|concerning|that|to|not to|never to)"
    r"(?: [^\s.;:!?]+){1,8}?)?"
)
"""The rule about something."""
_BE: Final = (
    r"(?:[ ,]+(?:is|are|was|were|be|been|being|has|have|had|now|hereby|all|therefore|thus|hence|got|get|shall|should"
    r"|can|could|may|might|must|will|would|to|since|already|fully|completely|entirely|officially|from now on|then"
    r"|today|considered|deemed|declared|treated as|as|currently|henceforth|both|also|just|safely|freely)){0,6}[ ,:]+"
)
_NOT: Final = r"(?:no longer|no more|not|don't|doesn't|didn't|won't|do not|does not|did not|will not|never|cease to)"
_ELSE: Final = (
    r"(?:an? |the )?(?:old|older|earlier|previous|prior|past|finished|former|yesterday"
    r"|(?:other|different) (?:tasks?|projects?|sessions?))\b"
)
"""Another task than this one."""
_ENDED: Final = (
    rf"(?:void(?:ed)?|null(?: and void|ified)?|revoked|rescinded|repealed|annulled|waived|lifted|overruled|superseded"
    rf"|moot|withdrawn|abolished|taken back|undone|set aside|off the table|out of force|overturned|reversed|retracted"
    rf"|(?:non-?|not )binding|{_NOT}(?: longer)?(?: be| in)? (?:appl(?:y|ies|ied)|holds?|valid|force|effect"
    rf"|bind(?:s|ing)?|counts?|matters?|stands?|enforced|followed|obeyed|required|needed|relevant|active|necessary|respected)"
    r"|(?:ignored|disregarded|broken|violated|bypassed|overridden|skipped) (?:from now|if|when|where|freely|at will)"
    rf"|(?:only |just )?(?:meant|needed|made|intended) for {_ELSE}"
    rf"|(?:only |just )?(?:belong(?:s|ed)?|appl(?:y|ies|ied)|pertain(?:s|ed)?) (?:only )?to {_ELSE}"
    r"|(?:only |just )?(?:in the way|test data|historic(?:al)?|(?:kept |there )?for (?:the record|context) only))"
)
"""What only rules can be."""
_DROPPED: Final = (
    rf"(?:{_ENDED}|ignored|disregarded|dropped|removed|deleted|disabled|cancell?ed|replaced|outdated|obsolete|expired"
    r"|forgotten|gone|relaxed|suspended|invalid(?:ated)?|optional|broken|violated|bypassed|overridden|skipped"
    r"|abandoned|discarded|over\b|off\b)"
)
_LIGHT: Final = (
    rf"(?:{_ENDED}|suspended|removed|optional|skipped|bypassed|overridden|cancell?ed|gone|off|over|ignored|disregarded"
    r"|outdated|obsolete|expired|relaxed|(?:merely |only |just |mere |a |an )*(?:suggestions?|recommendations?|advice"
    r"|tests?|jokes?|examples?))\b"
)
"""What rules are that need not be kept."""
_UNDO: Final = (
    r"(?:disregard(?:s|ed|ing)?|revok(?:es?|ed|ing)|rescind(?:s|ed|ing)?|waiv(?:es?|ed|ing)|overrul(?:es?|ed|ing)"
    r"|(?:do not|don't|need not|needn't|not|stop|no need to|no longer(?: (?:need|have) to)?|never)"
    r" (?:follow(?:ing)?|act(?:ing)? on"
    r"|obey(?:ing)?|heed(?:ing)?|respect(?:ing)?|honou?r(?:ing)?|keep(?:ing)? to)"
    r"|(?:not|no longer) bound by|exempt(?:s|ed)? (?:\w+ ){0,3}?from|released?s? (?:\w+ ){0,3}?from"
    r"|free (?:of|from)|take back|took back"
    r"|(?:free|allowed|permitted|welcome) to (?:deviate from|ignore|break|skip|bypass|disregard|override|violate)"
    r"|(?:nobody|no one) (?:needs|has) to (?:follow|obey|heed|respect|keep(?: to)?)"
    r"|pay no attention to|set(?:ting)? aside"
    r"|lift(?:s|ed|ing)?(?= (?:the|this|that|a|all) (?:bans?|prohibitions?|restrictions?)))"
)
_LEAVE: Final = (
    rf"(?:{_UNDO}|ignor(?:es?|ed|ing)|forget(?:s|ting)?|forgot|skip(?:s|ped|ping)?|drop(?:s|ped|ping)?"
    r"|void(?:s|ed|ing)?|overrid(?:es?|den|ing)|overrode|bypass(?:es|ed|ing)?|discard(?:s|ed|ing)?"
    r"|withdr(?:ew|aws?|awing)|und(?:o|oes|id|oing)|scrap(?:s|ped|ping)?|cancel(?:s|l?ed|l?ing)?|lift(?:s|ed|ing)?|relax(?:es|ed|ing)?|break(?:s|ing)?|broke|violat(?:es?|ed|ing)"
    rf"|abandon(?:s|ed|ing)?|(?:{_NOT}|stop) (?:apply(?:ing)?|enforc(?:e|ing))|remov(?:es?|ed|ing)"
    r"|delet(?:es?|ed|ing)|neglect(?:s|ed|ing)?|replac(?:es?|ed|ing)|supersed(?:es?|ed|ing))"
)
_BINDS: Final = r"(?:appl|hold|bind|count|matter|stand|(?:is|are) (?:enforced|in force|in effect|valid|binding))"
_VOID: Final = re.compile(
    rf"{_BARE}{_BE}{_LIGHT}|^{_LAWS} ?: ?(?:none|nothing|n/a|void|off|historic(?:al)?|outdated|obsolete|expired)\b"
    r"|(?:^|[,;:] ?)break (?:the )?(?:rules|constraints)\b|\b(?:"
    rf"{_NAMED}{_BE}(?:{_LIGHT}|{_DROPPED})|{_NAMED}[ ,]+{_ENDED}|{_OF_SOMETHING}{_BE}{_ENDED}|{_LEAVE} {_NAMED}"
    rf"|{_UNDO} {_OF_SOMETHING}|(?:treat|consider|regard|take|view|see) (?:{_NAMED}|the {_LAWS}) as {_LIGHT}"
    rf"|(?:do not|don't|never) (?:treat|consider|regard|see) (?:{_NAMED}|the {_LAWS}) as"
    r"|(?:ignor\w+|disregard\w*|skip\w*|forget|bypass\w*|overrid\w+|supersed\w+|replac\w+|lift\w*|relax\w*)"
    r" (?:the )?(?:rules|constraints|restrictions|prohibitions)(?= ?(?:$|[.,;!?:]))"
    rf"|as (?:if|though) (?:there were|you had|we had|there was) no {_LAWS}|system override"
    r"|(?:obey|follow) only (?:this|these|the following|(?:the|what) (?:\w+ )?(?:below|follows))"
    r"|allow(?:s|ed)? (?:everything|anything|all) (?:that|which) (?:was|is)"
    rf"|(?:none|neither) of (?:{_NAMED}|these|those|them|it)[^.;!?]{{0,20}}? {_BINDS}"
    rf"|(?:nothing|none) (?:of )?(?:above|below|here|listed)[^.;!?]{{0,20}}? {_BINDS}"
    rf"|nothing (?:under|in|of|from) (?:the )?{_LAWS}[^.;!?]{{0,20}}? {_BINDS}"
    rf"|no (?:longer )?(?:any )?{_LAWS} (?:{_BINDS}|exist|remain|any ?more)"
    rf"|(?:there (?:are|is) )no (?:more|longer)(?: any)? {_LAWS})"
)
_SPEAKS: Final = re.compile(
    rf"\b(?:{_LAWS}|above|below|following|foregoing|preceding|here|listed|everything|anything|all|what(?:ever)?"
    r"|none|neither|nothing|so far|before|earlier|given|stated|mentioned|override|only)\b"
)
"""A sentence without any of these words says nothing of rules."""
_HERE: Final = re.compile(
    r"(?:^|[,;:.—-] ?)(?:(?:but |and |now )?(?:they|these|those|it|this|that|all|both)"
    r"(?: of (?:them|these|those|it))?)?"
    rf"{_BE.replace('{0,6}[ ,:]+', '{0,6}[ ,:]*')}{_ENDED}\b"
)
"""Among the rules themselves `these` is enough."""
_LABEL: Final = re.compile(
    r"(?im)(?:^[ \t#*_>~+-]{0,16}|[(\[,:\u2013\u2014~*_-][ \t]{0,2})"
    r"(?:now |since |already |formerly |is |are |all |the )?"
    r"(?:obsolete|expired|outdated|old|former|past|cancel?led|inactive|suspended|deprecated|inapplicable"
    r"|not applicable|historic(?:al)?|optional|dropped|ignored?|revoked|void|lifted|waived|superseded|withdrawn"
    r"|not any ?more|no longer|not enforced|informational|for (?:the record|reference|information)|for info)"
    rf"(?:,? (?:only|now|by the user|for now|any ?more|valid|in force|{_LAWS}))?[ \t*_~]{{0,4}}(?:$|[)\]:.!])"
)
"""A mark that says so of what it stands beside, or of all below."""
_DENIED: Final = re.compile(
    r"(?:\b(?:never|not|cannot|nobody|no one|neither|nor|without|refus\w+ to)|n't)(?: \w+){0,2} $"
)
_RULES: Final = re.compile(rf"\b{_LAWS.replace('|assumptions?', '')}\b")
_MARKS: Final = str.maketrans(dict.fromkeys('*_`~"#()[]', " "))
_AFFIRMED: Final = re.compile(r"\bno $")


def voided_in(seen: str) -> Iterator[str]:
    """The sentences that say so of a text as it looks."""
    return filter(_voids, sentences(seen))


def is_about_rules(sentence: str) -> bool:
    """Whether a sentence speaks of rules or decisions, not of assumptions alone."""
    return _RULES.search(_plain(sentence)) is not None


def voided_among(text: str) -> int:
    """The same of what stands among rules, decisions or assumptions: there `these` and marks beside them mean them."""
    seen = as_seen(text)
    said = sum(1 for one in map(_plain, sentences(seen)) if _VOID.search(one) is None and _HERE.search(one))
    return said + sum(1 for _ in _LABEL.finditer(seen))


def _plain(sentence: str) -> str:
    return folded(apostrophes(sentence).lower().translate(_MARKS))


def _voids(sentence: str) -> bool:
    plain = _plain(sentence)
    return _SPEAKS.search(plain) is not None and any(
        not _DENIED.search(plain, 0, found.start()) and not _AFFIRMED.search(plain, 0, found.start())
        for found in _VOID.finditer(plain)
    )
