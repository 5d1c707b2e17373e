from __future__ import annotations

import pytest

from tritonpy.cli.parser import CommandParser, UsageError


@pytest.fixture
def parser():
    parser = CommandParser("tritonpy toy", "Toys.", lambda: "The end.")
    parser.add_argument("--model-repository")
    parser.add_argument("--count", type=int)
    return parser


def refusal(parser, *arguments):
    with pytest.raises(UsageError) as caught:
        parser.parse_args([*arguments])
    return str(caught.value)


def test_both_forms_of_a_flag_are_taken(parser):
    assert parser.parse_args(["--model-repository=a"]).model_repository == "a"
    assert parser.parse_args(["--model-repository", "a"]).model_repository == "a"


def test_an_unknown_flag_is_answered_with_the_nearest(parser):
    assert refusal(parser, "--modl_repository=x", "--zzz") == (
        "unrecognized option '--modl_repository'; did you mean '--model-repository'?\n"
        "unrecognized option '--zzz' (see tritonpy toy --help)"
    )


def test_a_flag_is_not_abbreviated(parser):
    assert "did you mean '--model-repository'?" in refusal(parser, "--model-repo=x")


def test_a_stray_argument_is_named(parser):
    assert refusal(parser, "x") == "Unexpected argument: x (see tritonpy toy --help)"


def test_a_missing_value_is_named(parser):
    assert refusal(parser, "--count") == "argument --count: expected one argument (see tritonpy toy --help)"


def test_the_help_ends_with_the_appendix(parser):
    assert parser.format_help().endswith("The end.\n")
