"""Profiles of models from a file: which window a command takes, and what it says of a file that cannot be used."""

from __future__ import annotations

import os

import pytest

from session_actor import InvalidArgument, ModelProfile, read_profiles

KNOWN = "window = 8_000\nmax_output = 1_000\nfamily = 'o200k'\n"


@pytest.mark.parametrize("command", [("show",), ("tree",), ("stats",), ("replay", "--to", "last")], ids=" ".join)
def test_a_window_is_that_of_the_profile(run, kiosk, command):
    name, *rest = command
    windows = [
        run(name, kiosk / "conversations", "kiosk", *rest, "--json", *options).objects[0]["budget"]["window"]
        for options in ([], ["--profiles", kiosk / "models.toml"])
    ]
    assert windows == [32_000, 8_000]


def test_a_difference_is_told_with_the_window_of_the_profile(run, kiosk):
    options = ["--profiles", kiosk / "models.toml", "--json"]
    (line,) = run("diff", kiosk / "conversations", "kiosk", "16", "last", *options).objects
    assert [each["window"] for each in line["budget"]] == [8_000, 8_000]


def test_a_request_to_a_model_of_one_s_own_is_the_same_with_its_profile(run, kiosk):
    question = ["replay", kiosk / "conversations", "kiosk", "--request", "16"]
    ran = run(*question)
    assert (ran.code, "--profiles FILE" in ran.out) == (1, True)
    assert run(*question, "--profiles", kiosk / "models.toml").code == 0


def test_a_file_may_be_json(tmp_path):
    path = tmp_path / "models"
    text = '\ufeff {"a": {"window": 8000, "max_output": 1000, "family": "o200k", "name": "long name"}, "b": %s}'
    path.write_text(text % '{"window": 200, "max_output": 10, "family": "claude3", "sees_images": false}', "utf-8")
    assert read_profiles(path) == {
        "a": ModelProfile(name="long name", window=8000, max_output=1000, family="o200k"),
        "b": ModelProfile(name="b", window=200, max_output=10, family="claude3", sees_images=False),
    }


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[a", "is neither TOML nor JSON that can be read: "),
        ("{", "is neither TOML nor JSON that can be read: "),
        ("a = 3", "'a' must be a table with the fields of a ModelProfile, got int"),
        (f"['']\n{KNOWN}", "'' must be the name of a model"),
        ("[a]\nwindow = 8_000", "'a' cannot be used: Object missing required field `max_output`"),
        (f"[a]\n{KNOWN}windo = 3", "'a' cannot be used: Object contains unknown field `windo`"),
        (f"[a]\n{KNOWN.replace('8_000', 'true')}", "'a': window cannot be used: Expected `int`, got `bool`"),
        (f"[a]\n{KNOWN.replace('8_000', '8')}", "'a': window must be from 100 to "),
        (f"[a]\n{KNOWN}dialects = ['x']", "'a': dialects cannot be used: Invalid enum value 'x'"),
        (f"[a]\n{KNOWN}dialects = []", "'a': dialects must be a tuple of at least one dialect"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_in_one_line(run, made, tmp_path, text, told):
    path = tmp_path / "models.toml"
    path.write_text(text)
    with pytest.raises(InvalidArgument) as refused:
        read_profiles(path)
    assert str(refused.value).startswith(str(path))
    assert told in str(refused.value)
    ran = run("show", made, "user-42", "--profiles", path)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize("arguments", [["show", "user-42", "--profiles", "none.toml"], ["stats", "--profiles", "x"]])
def test_a_file_that_is_not_there_or_of_no_use_is_told_in_one_line(run, made, arguments):
    ran = run(arguments[0], made, *arguments[1:])
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


def test_what_is_no_text_is_refused(tmp_path):
    (tmp_path / "models").write_bytes(b"[a]\n\xff")
    with pytest.raises(InvalidArgument, match=r"is no text in UTF-8 \(byte 4\)"):
        read_profiles(tmp_path / "models")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "is nested too deeply"),
        ("a = " + "[" * 200_000, "is nested too deeply"),
        ("a = " + "{a=" * 50_000 + "1" + "}" * 50_000, "is nested too deeply"),
        ("[a]\nwindow = " + "9" * 10_000, "is neither TOML nor JSON"),
        ('{"a": {"window": 1, "window": 2}}', "a key stands twice in one object"),
        ('{"a": {}, "a": {}}', "a key stands twice in one object"),
        ('{"a": {"window": 8000, "max_output": 1, "family": "o200k", "\\u001b[31m": 1}}', "unknown field `?[31m`"),
        (f"[a]\n{KNOWN}{'x' * 100_000} = 1", "unknown field `xxx"),
        (f"[gpt-4.1-house]\n{KNOWN}", "unknown field `1-house` (a name with dots in it wants quotes)"),
        ("#" * 1_000_001, "has more than 1,000,000 bytes"),
        (f"[a]\n{'.'.join(['a'] * 100_000)} = 1", "a key of more than 16 parts in line 2"),
        (f"[{' . '.join(['a'] * 100_000)}]", "a key of more than 16 parts in line 1"),
        ("\n" + ".".join(['"\\""', "'.'"] * 50_000), "a key of more than 16 parts in line 2"),
        (f"[a]\n{'.'.join(['a'] * 16)} = 1", "unknown field `a`"),
        (f"[a]\n{KNOWN}source = '" + "a.b " * 200_000 + "'\nb = 1", "unknown field `b`"),
        ('\\"' * 400_000, "is neither TOML nor JSON"),
        ('"a' * 400_000, "is neither TOML nor JSON"),
    ],
    ids=range(17),
)
def test_a_hostile_file_is_refused_in_one_short_line(run, made, tmp_path, text, told):
    path = tmp_path / "models"
    path.write_text(text)
    with pytest.raises(InvalidArgument) as refused:
        read_profiles(path)
    assert told in str(refused.value)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < len(str(path)) + 500
    ran = run("show", made, "user-42", "--profiles", path)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize("path", [None, 3, b"models", ["models"], "a\0b"], ids=repr)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(InvalidArgument, match=r"^path "):
        read_profiles(path)


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidArgument, match="is no file but a pipe"):
        read_profiles(tmp_path / "pipe")
