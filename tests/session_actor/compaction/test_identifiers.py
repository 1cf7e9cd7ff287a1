"""Exact names: what is one, and where it stands for itself."""

from __future__ import annotations

import pytest

from session_actor.compaction.identifiers import (
    found_in,
    holds_name,
    holds_part,
    measures_in,
    numbers_in,
    plain_number,
)


def names(text):
    return {name.text: name.kind for name in found_in(text).names}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("src/billing/worker.py", "path"),
        ("/etc/hosts", "path"),
        ("~/.ssh/config", "path"),
        ("./run.sh", "path"),
        ("../theme/theme.js", "path"),
        ("C:\\Users\\x\\a.txt", "path"),
        ("worker.py", "path"),
        ("__init__.py", "path"),
        ("docs/", "path"),
        ("https://ci.example/builds/8841?x=1", "url"),
        ("s3://bucket/key", "url"),
        ("3f9a2c7", "hash"),
        ("3f9a2c71d0be4f5a6b7c8d9e0f1a2b3c4d5e6f70", "hash"),
        ("sha256:9f86d081884c7d659a2feaa0c55ad015", "hash"),
        ("5a0c41de-6a0b-4d0e-9b64-0f4b6d1f7c20", "id"),
        ("OPS-441", "id"),
        ("#1234", "id"),
        ("order_88412", "id"),
        ("INC0012345", "id"),
        ("1.2.3", "version"),
        ("v2.10", "version"),
        ("1.2.3-rc.1", "version"),
        ("10.0.0.1", "version"),
        ("ops@shop.example", "email"),
    ],
)
def test_a_name_is_found_for_what_it_is(name, kind):
    for text in (name, f"See {name}.", f"({name})", f'"{name}", yes', f"`{name}`", f"a={name}", f"**{name}**"):
        assert names(text) == {name: kind}, text


@pytest.mark.parametrize(
    "text",
    [
        *(
            "and/or",
            "input/output",
            "TCP/IP",
            "24/7",
            "km/h",
            "text/plain",
            "UTF-8",
            "SHA-256",
            "Node.js",
            "e.g.",
            "i.e.",
        ),
        *("defaced", "1234567", "deadbeef", "2026", "well-known", "hello_world", "3.14", "a@b", "://", "/", "\\", "."),
    ],
)
def test_other_words_are_none(text):
    assert names(f"See {text} there") == {}


def test_a_path_is_found_without_the_number_of_its_line():
    assert names("at src/a.py:12:5: error") == {"src/a.py": "path"}
    assert names("at C:\\a.py:12") == {"C:\\a.py": "path"}


def test_what_is_announced_as_a_secret_is_no_name():
    assert names("api_key=3f9a2c71d0be4f5a6b7c8d9e0f1a2b3c") == {}
    assert names('{"token": "5a0c41de-6a0b-4d0e-9b64-0f4b6d1f7c20"}') == {}
    assert names("Bearer 3f9a2c71d0be4f5a6b7c8d9e0f1a2b3c") == {}
    assert names("https://ops:hunter22@ci.example/x") == {}


def test_numbers_are_the_same_with_and_without_thousands():
    assert plain_number("1,250") == plain_number("1250") == plain_number("01250") == "1250"
    assert found_in("1,250 ms, then 0.5; (12)").numbers == {"1250", "0.5", "12"}
    assert list(numbers_in("base64 and 12 in src/a1.py, v2, 1,250 of 10%")) == ["12", "1250", "10"]


def test_numbers_with_a_unit_are_exact():
    found = [name.text for name in measures_in("Wait 1,250 ms or 30s, $20, 5 %, 1,000,000 or 17 in 2026, 3mm3.")]
    assert found == ["1,250 ms", "30s", "$20", "5 %", "1,000,000"]


@pytest.mark.parametrize(
    ("text", "name", "is_there"),
    [
        ("OPS-4412", "OPS-441", False),
        ("XOPS-441", "OPS-441", False),
        ("OPS-441-b", "OPS-441", False),
        ("OPS-4412 and OPS-441.", "OPS-441", True),
        ("(OPS-441)", "OPS-441", True),
        ("1,250,000 ms", "1,250", False),
        ("21,250", "1,250", False),
        ("1,250.", "1,250", True),
        ("src/a.py", "a.py", False),
        ("src/a.py:12", "src/a.py", True),
        ("src/a.pyc", "src/a.py", False),
        ("src/a.py.bak", "src/a.py", False),
        ("https://x.example/a?b=1", "https://x.example/a", False),
        ("https://x.example/a/b", "https://x.example/a", False),
        ("", "a", False),
        ("a", "", False),
    ],
)
def test_a_name_stands_for_itself(text, name, is_there):
    assert holds_name(text, name) is is_there


def test_the_end_of_a_path_and_a_folder_are_parts_of_it():
    assert holds_part("/home/x/src/a.py", "src/a.py")
    assert holds_part("/home/x/src/a.py", "/home/x")
    assert not holds_part("/home/x/src/a.py", "rc/a.py")
    assert not holds_part("/home/x/src/a.py", "src/a.p")
