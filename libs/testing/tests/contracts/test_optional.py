from __future__ import annotations

from tritonpy_testing.contracts.optional import OptionalTests, given, only_if


class Contract(OptionalTests):
    thing: str = ""

    def make(self):
        raise NotImplementedError

    def test_always(self):
        """Runs."""

    @only_if(given("thing"))
    def test_of_the_thing(self):
        assert self.thing == "right"

    @only_if(given("make"))
    def test_of_what_is_made(self):
        assert self.make() == "right"


class Nothing(Contract):
    pass


class WithThing(Contract):
    thing = "wrong"


class Maker(Nothing):
    def make(self):
        return "right"


def test_tests_without_their_condition_do_not_exist(tests):
    assert tests(Nothing) == {"test_always"}


def test_tests_with_their_condition_run(tests, failures):
    assert tests(WithThing) == {"test_always", "test_of_the_thing"}
    assert failures(WithThing) == {"test_of_the_thing"}


def test_a_further_derived_class_may_meet_the_condition(tests):
    assert tests(Maker) == {"test_always", "test_of_what_is_made"}
    assert tests(type("Both", (Maker,), {"thing": "right"})) == {
        "test_always",
        "test_of_what_is_made",
        "test_of_the_thing",
    }


def test_an_overridden_test_stays(tests):
    def test_of_the_thing(self):
        """Runs."""

    own = type("Own", (Contract,), {"test_of_the_thing": test_of_the_thing})
    assert tests(own) == tests(type("Derived", (own,), {})) == {"test_always", "test_of_the_thing"}
