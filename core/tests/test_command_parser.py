from __future__ import annotations

import pytest

from tritonpy.cli import CommandParser, UsageError


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


def test_both_forms_of_a_flag_are_accepted(parser):
    assert parser.parse_args(["--model-repository=a"]).model_repository == "a"
    assert parser.parse_args(["--model-repository", "a"]).model_repository == "a"


def test_an_unknown_flag_suggests_the_closest_one(parser):
    assert refusal(parser, "--modl_repository=x", "--zzz") == (
        "unrecognized option '--modl_repository'; did you mean '--model-repository'?\n"
        "unrecognized option '--zzz' (see tritonpy toy --help)"
    )


def test_a_flag_is_not_abbreviated(parser):
    assert "did you mean '--model-repository'?" in refusal(parser, "--model-repo=x")


def test_a_stray_argument_is_named(parser):
    assert refusal(parser, "x") == "Unexpected argument: x (see tritonpy toy --help)"


def test_a_missing_value_is_named(parser):
    assert (
        refusal(parser, "--count")
        == "argument --count: expected one argument (see tritonpy toy --help)"
    )


def test_the_help_ends_with_the_appendix(parser):
    assert parser.format_help().endswith("The end.\n")


@pytest.fixture
def long_parser():
    parser = CommandParser(
        "tritonpy toy", "Toys.", lambda: "The end.", {"--count": "how many, 50 % at most"}
    )
    parser.add_argument("toy", nargs="?", help="which toy")
    parser.add_argument("--model-repository", help="where they are")
    parser.add_argument("-c", "--count", type=int, help="a long explanation")
    return parser


def test_the_help_lists_only_common_options(long_parser):
    help_text = long_parser.format_help()
    for text in ("which toy", "how many, 50 % at most", "--help-all", "--help"):
        assert text in help_text
    for text in ("where they are", "a long explanation", "The end."):
        assert text not in help_text


def test_the_complete_help_shows_every_option_and_the_appendix(long_parser, capsys):
    with pytest.raises(SystemExit) as end:
        long_parser.parse_args(["--help-all"])
    assert end.value.code in {None, 0}
    help_text = capsys.readouterr().out
    for text in ("where they are", "a long explanation", "The end."):
        assert text in help_text


def test_an_unknown_flag_refers_to_the_complete_help(long_parser):
    assert (
        refusal(long_parser, "--zzz") == "unrecognized option '--zzz' (see tritonpy toy --help-all)"
    )
    assert vars(long_parser.parse_args(["--count", "3"])) == {
        "toy": None,
        "model_repository": None,
        "count": 3,
    }
