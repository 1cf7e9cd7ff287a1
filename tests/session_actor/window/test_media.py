"""Sizes of images and pages of PDFs, from bytes that anybody may have made."""

from __future__ import annotations

import struct
import zlib
from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.media import image_size, pdf_pages

# Pictures of 16 x 16 pixels, as programs write them.
GIF = b64decode(
    "R0lGODlhEAAQAPU/AOu7GOu+IfPBGvrHGf3LG//MHOvCKv/PI//PJP/QJf/TLevFNOjHPf/TMP/UMP3VNvrTOf/XOfnVPv/YOuzORf/aQf/b"
    "RP/eS//fTv/iVf/jWP/nYvLhbvXjb/3pav/rbDJghzZmkDZnkTZpkzdoljdqljlsljpvmzpwnDtwnDxxnj1zoj50oj92pUB4pkJ7qkN8q0N9"
    "rUV/r0aAsUeBskiDtEiFtkqGukyJvEyKvEyKv0+NwVCPw1KRxv///wAAACH/C0ltYWdlTWFnaWNrB2dhbW1hPTAAIfkEBQAAPwAsAAAAABAA"
    "EAAABpvAn/C3u81iLRVpyBTmfLMXC1VqMm1RVqo0sv50thjLFDKVqszeDleTuVSn0fmXuUh+PB1N9oKP/iA/FxUPXzY0UipnIoEUhAo/hzAu"
    "XU0VEQoHP0cuIj8cHhsZGBUTCggEPzFSPx0fGxoYFhENCAUCQispP6+xpacFBVawGAwLBgEAAF6xsw0Jwl4/shEOCT6p0j8QzwUD2uBDQQA7"
)
JPEG = b64decode(
    "/9j/4AAQSkZJRgABAQEAAQABAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8QEBEQCgwS"
    "ExIQEw8QEBD/2wBDAQMDAwQDBAgEBAgQCwkLEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBD/wAAR"
    "CAAQABADASIAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAABwQF/8QAJBAAAQQBBAICAwAAAAAAAAAAAQIDBAYFBwgSExEiABQJMTL/xAAV"
    "AQEBAAAAAAAAAAAAAAAAAAAABv/EACMRAAECBQMFAAAAAAAAAAAAAAECEQMEBQYhABIxFRZhgeH/2gAMAwEAAhEDEQA/ABSm0mobc8HmExLU"
    "lRzzEWPkJWW+ulrsaUVAseUgslSlH9LKuPryIKuWPZdskzXmm3fX5m2nF4GlVxx/HOpx4ks51+MiU/Iaad7UcUo4tILoS4kqcWkezS0hO/Hv"
    "uRp0rO6hWnWO1UisZVuFi4GFeyEpmGepa5S5SWVPuciFKRFLgSrwetnyPIB+Vb4N9mKhQMzo5po9XLdDs9d6ZVix2VEhiL9kuNPxw2gEKcDQ"
    "/rs8AuA8VAe0vdl7VOYn+27flGAUgmITjbhSmCg3BYlyeWDkMolvw4KOp1KM6iCNvngZHwetf//Z"
)
WEBP = b64decode(
    "UklGRqgBAABXRUJQVlA4WAoAAAAQAAAADwAADwAAQUxQSMMAAAABJ6KokSTleucYX+ffKpmImP90cY3gJjDi4Yt3MsjBEVyDKzDosHgVjnhR"
    "NcEIDAJPkqBqsFUZHNa2bUYvTsZ2PLbtd/uvKa4hov9J0f2PkPe6REkkGzolkTTzFG0Ox9PlFiD0CxS+kOGDtxoynjaCfx0pfk52CPuInrOR"
    "75lzRugygtv4zEiy90UwfSD9NheMITJWLaXWayO8XeOlWRXVnIGk2W6WdYoYMQ+KqixQNPowgt+6a1BSKbUtz+lUFAoBAAAAVlA4IL4AAACQ"
    "AgCdASoQABAAAwA0JbACdDBPCIUMfAMdCCz96AD+/XSg/QKbH4r3Q3ycN/bSDK/T/zVo4u6nvclvG/SqxWOuup+XhN9BojvaW+Tv+MvxvX/h"
    "r/o/5Qns9LtmX/+qKdl/yWznhuasl7nkxvSTI4xf3Y85VSB/lU/8Ofj/b9JrA+ifvIOYZm2x1RP/dhfmsf5diuSfR7+z+r/+HR3zEo/+XM/B"
    "+vkYw73Pzx+ROaAB/ZoBSzEs3rzZe6qsAAAA"
)


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def bmp(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<IiiHH", 40, width, height, 1, 24) + bytes(24)


def old_bmp(width: int, height: int) -> bytes:
    return b"BM" + bytes(12) + struct.pack("<IHHHH", 12, width, height, 1, 24)


def jpeg(width: int, height: int, marker: int = 0xC0, before: bytes = b"") -> bytes:
    frame = struct.pack(">BBHBHHB", 0xFF, marker, 11, 8, height, width, 1)
    return b"\xff\xd8" + before + frame + bytes(20)


def segment(marker: int, length: int) -> bytes:
    return bytes([0xFF, marker]) + struct.pack(">H", length) + bytes(length - 2)


def webp(form: bytes, data: bytes) -> bytes:
    chunk = form + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", 4 + len(chunk)) + b"WEBP" + chunk


def lossy(width: int, height: int) -> bytes:
    return webp(b"VP8 ", b"\x30\x01\x00\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height | 0x8000) + bytes(9))


def lossless(width: int, height: int) -> bytes:
    return webp(b"VP8L", b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14 | 1 << 28) + bytes(9))


def extended(width: int, height: int) -> bytes:
    numbers = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return webp(b"VP8X", b"\x10\0\0\0" + numbers)


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + GIF[10:]


@pytest.mark.parametrize("picture", [GIF, JPEG, WEBP], ids=["gif", "jpeg", "webp"])
def test_pictures_of_real_programs_tell_their_size(picture):
    assert image_size(picture) == (16, 16)


EVERY = [png, bmp, old_bmp, jpeg, lossy, lossless, extended, gif]


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize(("width", "height"), [(1, 1), (640, 480), (3, 16_000)])
def test_each_format_tells_width_and_height(make, width, height):
    assert image_size(make(width, height)) == (width, height)


def test_rows_that_go_downwards_are_as_high():
    assert image_size(bmp(640, -480)) == (640, 480)


@pytest.mark.parametrize("marker", [0xC0, 0xC1, 0xC2, 0xC3, 0xC9, 0xCA, 0xCF])
def test_a_jpeg_tells_its_size_behind_whatever_comes_first(marker):
    before = segment(0xE1, 60_000) + segment(0xC4, 40) + b"\xff\xff\xff" + segment(0xFE, 2) + b"\xff\x01" + b"\xff\xd0"
    assert image_size(jpeg(640, 480, marker, before)) == (640, 480)


@pytest.mark.parametrize("make", [png, bmp, jpeg, lossy, extended, gif])
def test_a_picture_without_pixels_has_no_size(make):
    if make is extended:
        assert image_size(make(1, 1)) == (1, 1)  # it cannot say 0
    else:
        assert image_size(make(0, 5)) is None
        assert image_size(make(5, 0)) is None


@pytest.mark.parametrize("make", EVERY)
def test_a_beginning_is_enough_or_says_nothing_and_never_anything_else(make):
    whole = make(640, 480)
    sizes = [image_size(whole[:length]) for length in range(len(whole) + 1)]

    assert set(sizes) == {None, (640, 480)}
    assert sizes == sorted(sizes, key=lambda size: size is not None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIDAT" + bytes(20),
        b"\xff\xd8",
        b"\xff\xd8\xff\xd9" + bytes(20),
        b"\xff\xd8\xff\xda" + jpeg(5, 5),
        b"\xff\xd8\0",
        b"GIF90a\5\0\5\0",
        b"RIFF\0\0\0\0WAVEfmt " + bytes(20),
        webp(b"VP8 ", bytes(20)),
        webp(b"VP8L", bytes(20)),
        webp(b"ALPH", bytes(20)),
        b"BM",
        b"<svg width='5' height='5'/>",
    ],
)
def test_what_is_no_picture_or_a_damaged_one_has_no_size(data):
    assert image_size(data) is None


@given(st.sampled_from([b"", b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"RIFF1234WEBPVP8", b"BM"]), st.binary())
def test_no_bytes_raise(starts, data):
    size = image_size(starts + data)

    assert size is None or min(size) > 0


@given(st.sampled_from(EVERY), st.integers(0, 40), st.binary(min_size=1, max_size=4))
def test_no_damage_raises(make, at, damage):
    data = bytearray(make(640, 480))
    data[at : at + len(damage)] = damage
    size = image_size(bytes(data))

    assert size is None or min(size) > 0


@pytest.mark.parametrize("filling", [b"\xff" * 5_000_000, b"\xff\xe0\0\2" * 2_000_000, b"\xff\xe0\0\0" * 2_000_000])
def test_a_jpeg_that_never_tells_is_given_up(filling):
    assert image_size(b"\xff\xd8" + filling + jpeg(5, 5)[2:]) is None


# --- documents ---


def pdf(*objects: bytes) -> bytes:
    return b"%PDF-1.7\n" + b"".join(b"%d 0 obj %s endobj\n" % (n, each) for n, each in enumerate(objects, 1)) + b"%%EOF"


def packed(*objects: bytes) -> bytes:
    data = zlib.compress(b" ".join(objects))
    return b"<</Type/ObjStm/Filter/FlateDecode/Length %d>>stream\r\n%s\nendstream" % (len(data), data)


PAGE = b"<</Type /Page /Parent 1 0 R>>"
PAGES = b"<</Type /Pages /Count 3 /Kids [2 0 R 3 0 R]>>"


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        (pdf(PAGES, PAGE, b"<</Type/Page/Contents 5 0 R>>", b"<< /Type\n/Page\n>>"), 3),
        (pdf(PAGES, packed(PAGE, PAGE), packed(PAGE)), 3),
        (pdf(PAGES, PAGE, packed(PAGE)), 2),
        (b"junk before" + pdf(PAGES, PAGE), 1),
        (pdf(PAGES), None),
        (pdf(b"<</Type /PageLabel>>"), None),
        (pdf(b"<</Type/ObjStm>>stream\nnot deflated endstream"), None),
        (pdf(b"<</Type/ObjStm>>stream\n" + zlib.compress(PAGE)), None),
        (b"", None),
        (b"/Type /Page", None),
        (bytes(2_000) + pdf(PAGE), None),
    ],
)
def test_pages_are_counted_where_they_are_shown(data, pages):
    assert pdf_pages(data) == pages


def test_packed_objects_are_unpacked_up_to_a_limit():
    bomb = packed(bytes(30 << 20))

    assert pdf_pages(pdf(bomb, packed(PAGE))) is None
    assert pdf_pages(pdf(*[bomb] * 2_000)) is None
    assert pdf_pages(pdf(*[PAGE] * 100_001)) == 100_000


@given(st.sampled_from([b"", b"%PDF-1.5 ", b"%PDF-1.5 /Type/Page /ObjStm stream\n"]), st.binary())
def test_no_bytes_raise_where_pages_are_counted(starts, data):
    pages = pdf_pages(starts + data)

    assert pages is None or pages > 0
