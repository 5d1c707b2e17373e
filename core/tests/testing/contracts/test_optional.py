from __future__ import annotations

from tritonpy.testing.contracts.optional import OptionalTests, given, only_where


class Contract(OptionalTests):
    thing: str = ""

    def make(self):
        raise NotImplementedError

    def test_always(self):
        """Runs."""

    @only_where(given("thing"))
    def test_of_the_thing(self):
        assert self.thing == "right"

    @only_where(given("make"))
    def test_of_what_is_made(self):
        assert self.make() == "right"


class Nothing(Contract):
    pass


class WithThing(Contract):
    thing = "wrong"


class Maker(Nothing):
    def make(self):
        return "right"


def test_what_has_nothing_to_check_does_not_exist(tests):
    assert tests(Nothing) == {"test_always"}


def test_what_the_author_gave_is_checked(tests, failures):
    assert tests(WithThing) == {"test_always", "test_of_the_thing"}
    assert failures(WithThing) == {"test_of_the_thing"}


def test_a_class_derived_further_may_give_it(tests):
    assert tests(Maker) == {"test_always", "test_of_what_is_made"}
    assert tests(type("Both", (Maker,), {"thing": "right"})) == {
        "test_always",
        "test_of_what_is_made",
        "test_of_the_thing",
    }


def test_a_test_that_the_author_writes_anew_stays(tests):
    def test_of_the_thing(self):
        """Runs."""

    own = type("Own", (Contract,), {"test_of_the_thing": test_of_the_thing})
    assert tests(own) == tests(type("Derived", (own,), {})) == {"test_always", "test_of_the_thing"}
