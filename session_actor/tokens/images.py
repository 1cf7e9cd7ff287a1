"""How many tokens an image or a page of a document has, by the rules that the providers publish.

All of them count pixels, none counts bytes: a picture of 3 MB costs what its width and height cost. Sources:
OpenAI, Images and vision, "Calculating costs"; Anthropic, Vision, "Resolution and token cost", and Coordinates, "How
Claude resizes and pads images", and PDF support, "Estimate your costs"; Google, Image understanding, "Token
calculation", and Media resolution, "Token counts"; for open models the image processors of their repositories.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil, floor, sqrt
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Detail: TypeAlias = Literal["auto", "low", "high"]
"""What OpenAI's `detail` asks for; other providers' rules take no notice of it."""

UNKNOWN_SIZES: Final = ((4_096, 3_072), (2_048, 768))
"""An image whose size is not known is taken for the costlier of these: a photograph of 12 megapixels, and the shape
that makes most tiles."""
PAGE: Final = (1_240, 1_754)
"""A page is taken for A4 at 150 dots an inch [pixels]."""
PAGE_BYTES: Final = 20_000
"""A document whose pages cannot be counted is taken to have one for each 20,000 bytes: a page of text has more."""
MOST_PAGES: Final = 100
"""… and not more than 100: what the strictest provider accepts."""
UNKNOWN_PAGES: Final = 20
"""A document that is only named, by a URL or a file id, is taken to have 20 pages."""


@dataclass(frozen=True)
class Tiles:
    """OpenAI until gpt-5: fits into 2,048 x 2,048, shorter side to 768, a price for each tile of 512, and a base."""

    base: int
    tile: int
    page_text: int = 1_000

    def tokens(self, width: int, height: int, detail: Detail) -> int:
        """The tokens of an image of that many pixels."""
        if detail == "low":
            return self.base
        scale = min(1.0, 2_048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        across, down = max(1, round(width * scale)), max(1, round(height * scale))
        return self.base + self.tile * ceil(across / 512) * ceil(down / 512)


@dataclass(frozen=True)
class Patches:
    """OpenAI's later models: patches of 32 x 32 up to a budget, times a factor of the model."""

    factor: float
    budget: int | None = 1_536
    """The most patches; None: any number."""
    edge: int | None = 2_048
    """The longest side [pixels]; None: any."""
    page_text: int = 1_000

    def tokens(self, width: int, height: int, detail: Detail) -> int:
        """The tokens of an image of that many pixels."""
        if detail == "low":
            return ceil(self.factor * _patches(width, height, 256, 512))
        return ceil(self.factor * _patches(width, height, self.budget, self.edge))


@dataclass(frozen=True)
class Claude:
    """Anthropic: patches of 28 x 28; what is larger than the model's limits is made as large as they allow."""

    edge: int
    patches: int
    page: int = 3_000
    """Text and picture of a dense page: the upper end of the 1,500 to 3,000 that are published. Measured were 1,600 for
    a scan, 2,100 to 2,350 for a page of text, 2,500 for one of tables, whatever detail the model sees in images
    (huggingface.co/datasets/JOHNISKING/pdf-token-cost)."""

    def tokens(self, width: int, height: int, detail: Detail) -> int:
        """The tokens of an image of that many pixels."""
        del detail
        long, short = max(width, height), min(width, height)
        if not self._fits(long, short):
            ratio = long / short
            fits, fails = 1, long
            while fits + 1 < fails:
                middle = (fits + fails) // 2
                if self._fits(middle, max(1, round(middle / ratio))):
                    fits = middle
                else:
                    fails = middle
            long, short = fits, max(1, round(fits / ratio))
        return ceil(long / 28) * ceil(short / 28)

    def _fits(self, long: int, short: int) -> bool:
        across, down = ceil(long / 28), ceil(short / 28)
        return across * 28 <= self.edge and across * down <= self.patches


@dataclass(frozen=True)
class Crops:
    """Gemini until 2.5: 258 up to 384 x 384; else 258 for each crop of two thirds of the shorter side, 256 to 768."""

    page_text: int = 0
    """A page costs what one image of it costs: 258."""

    def tokens(self, width: int, height: int, detail: Detail) -> int:
        """The tokens of an image of that many pixels."""
        del detail
        if max(width, height) <= 384:  # noqa: PLR2004 - the published limit
            return 258
        scale = min(1.0, 3_072 / max(width, height))
        width, height = max(1, floor(width * scale)), max(1, floor(height * scale))
        side = min(768, max(256, floor(min(width, height) / 1.5)))
        return 258 * ceil(width / side) * ceil(height / side)


@dataclass(frozen=True)
class Fixed:
    """The same for every image."""

    image: int
    page: int
    """A picture of it."""
    page_text: int = 1_000

    def tokens(self, width: int, height: int, detail: Detail) -> int:
        """The tokens of an image of that many pixels."""
        del width, height, detail
        return self.image


@dataclass(frozen=True)
class Grid:
    """Open models: a token for each patch, and one for each row of them; larger images are made smaller."""

    side: int
    edge: int
    rows: bool = False
    page_text: int = 1_000

    def tokens(self, width: int, height: int, detail: Detail) -> int:
        """The tokens of an image of that many pixels."""
        del detail
        scale = min(1.0, self.edge / max(width, height))
        across, down = max(1, ceil(width * scale / self.side)), max(1, ceil(height * scale / self.side))
        return (across + self.rows) * down


Rule: TypeAlias = Tiles | Patches | Claude | Crops | Fixed | Grid
"""One provider's way to count."""

RULES: Final[Mapping[str, Rule]] = {
    "openai-4o": Tiles(85, 170),
    "openai-4o-mini": Tiles(2_833, 5_667),
    "openai-o": Tiles(75, 150),
    "openai-5": Tiles(70, 140),
    "openai-4.1-mini": Patches(1.62),
    "openai-4.1-nano": Patches(2.46),
    "openai-o4-mini": Patches(1.72),
    "openai-5.2": Patches(1.2),
    "openai-5.4": Patches(1.2, 2_500),
    "openai-5.5": Patches(1.2, 10_000, 6_000),
    "openai-5.6": Patches(1.2, None, None),
    "claude": Claude(1_568, 1_568),
    "claude-high": Claude(2_576, 4_784),
    "gemini-2": Crops(),
    "gemini-3": Fixed(1_120, 560, 0),
    "gemma-3": Fixed(258, 258),
    "llama-3": Fixed(6_404, 6_404),
    "llama-4": Fixed(2_500, 2_500),
    "mistral": Grid(28, 1_540, rows=True),
    "pixtral": Grid(16, 1_024, rows=True),
    "qwen": Grid(28, 3_584),
    "none": Fixed(0, 0),
    "unknown": Grid(28, 2_048),
}
"""The rules by name. Where two published tables differ (gpt-5-mini, gpt-5-nano), the profiles name the dearer one. The
figure of `llama-3` is four tiles of 1,601, that of `llama-4` sixteen tiles and the whole at 144 each; `unknown` is as
dear as any but OpenAI's largest. Gemini 3 does not count the text of a page ("You are not charged for tokens
originating from the extracted native text in PDFs"; Document understanding, "Gemini 3 models")."""


def image_tokens(width: int, height: int, rule: str, detail: Detail = "auto") -> int:
    """Return how many tokens an image has.

    Args:
        width: in pixels; less than 1 counts as not known, as for `height`.
        height: in pixels.
        rule: a name in `RULES`.
        detail: as OpenAI takes it; `auto` is what a request without it gets.

    Raises:
        InvalidArgument: there is no such rule.
    """
    if width < 1 or height < 1:
        return unknown_image_tokens(rule)
    return _rule(rule).tokens(width, height, detail)


def unknown_image_tokens(rule: str) -> int:
    """Return what an image costs whose size is not known: the costlier of `UNKNOWN_SIZES`. Raises as `image_tokens`."""
    return _unknown(rule)


def page_tokens(rule: str) -> int:
    """Return what one page of a document costs: its text and a picture of it. Raises as `image_tokens`."""
    return _page(rule)


def pages_of(size_bytes: int | None) -> int:
    """Return how many pages are assumed of a document that cannot be looked into; None: its bytes are not known."""
    if size_bytes is None:
        return UNKNOWN_PAGES
    return min(MOST_PAGES, max(1, ceil(size_bytes / PAGE_BYTES)))


@cache
def _unknown(rule: str) -> int:
    known = _rule(rule)
    return max(known.tokens(width, height, "auto") for width, height in UNKNOWN_SIZES)


@cache
def _page(rule: str) -> int:
    known = _rule(rule)
    if isinstance(known, Fixed):
        return known.page + known.page_text
    if isinstance(known, Crops):
        return 258
    if isinstance(known, Claude):
        return known.page
    return known.tokens(*PAGE, "auto") + known.page_text


def _rule(rule: str) -> Rule:
    found = RULES.get(rule) if type(rule) is str else None
    if found is None:
        from session_actor.errors import InvalidArgument

        raise InvalidArgument("image_rule", f"must be one of {', '.join(RULES)}")
    return found


def _patches(width: int, height: int, budget: int | None, edge: int | None) -> int:
    """Count patches of 32 x 32 after the resizing that is published: into the edge, then into the budget."""
    if edge is not None and max(width, height) > edge:
        scale = edge / max(width, height)
        width, height = max(1, round(width * scale)), max(1, round(height * scale))
    count = ceil(width / 32) * ceil(height / 32)
    if budget is None or count <= budget:
        return count
    shrink = sqrt(32 * 32 * budget / (width * height))
    across, down = width * shrink / 32, height * shrink / 32
    shrink *= min(floor(across) / across, floor(down) / down) if across >= 1 and down >= 1 else 1.0
    resized = ceil(round(width * shrink) / 32) * ceil(round(height * shrink) / 32)
    return max(1, min(budget, resized))
