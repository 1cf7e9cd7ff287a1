"""Secrets: what looks like one, and what only looks long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_actor.compaction.secrets import HIDDEN, has_secret, redacted

SECRETS = (
    "sk-abcdefghijklmnop1234",
    "sk-ant-api03-abc_def-ghijklmnopqrstuvwxyz",
    "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "github_pat_11ABCDEFG0abcdefghijkl",
    "xoxb-123456789012-abcdefghij",
    "AKIAIOSFODNN7EXAMPLE",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "glpat-abcdefghij0123456789",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "Bearer abcdefghijklmnop0123",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "kX9vQ2mZ7pL4nR8sT1wY6bC3dF5gH0jKaE9u",
)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_seen_anywhere(secret):
    for text in (secret, f"Use {secret}, please.", f'{{"a": "{secret}"}}', f"({secret})"):
        assert has_secret(text)
        assert secret not in redacted(text)
        assert HIDDEN in redacted(text)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("password: hunter2!", "password: [secret]"),
        ('"api_key": "abc123def"', '"api_key": "[secret]"'),
        ("DB_PASSWORD=hunter22", "DB_PASSWORD=[secret]"),
        ("https://ops:hunter22@ci.example/x", "https://ops:[secret]@ci.example/x"),
        ("https://ops:hunter22@ci.example:8080/x", "https://ops:[secret]@ci.example:8080/x"),
    ],
)
def test_only_the_secret_itself_is_hidden(text, kept):
    assert redacted(text) in {kept, kept.replace("ops:[secret]", "[secret]")}


@pytest.mark.parametrize(
    "text",
    [
        "3f9a2c71d0be4f5a6b7c8d9e0f1a2b3c4d5e6f70",
        "5a0c41de-6a0b-4d0e-9b64-0f4b6d1f7c20",
        "/Users/someone/Workspaces/Project1/packages/CodingAgent2/src",
        "test_that_the_parser_reads_every_line_of_a_file",
        "TestUserAuthenticationServiceFactory2Implementation",
        "Count 12,000 tokens: fine.",
        "The password: required.",
        "max_tokens: 4096",
        "https://ci.example/builds/8841",
        "https://[::1]:8080/x",
        "=" * 60,
        "token = tokens[0]",
        "key: value",
    ],
)
def test_what_only_looks_long_is_left(text):
    assert redacted(text) == text


@given(
    st.lists(st.one_of(st.text(), st.sampled_from([*SECRETS, "password=", "token: ", "://a:", "@b", HIDDEN]))).map(
        "".join
    )
)
def test_hiding_twice_changes_nothing(text):
    once = redacted(text)
    assert redacted(once) == once
    assert not has_secret(once)
