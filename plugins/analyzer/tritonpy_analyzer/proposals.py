"""Proposes candidates to measure: optuna's samplers behind an interface of ours."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import optuna

from tritonpy_analyzer.space import Candidate, Space, normalized

optuna.logging.set_verbosity(optuna.logging.WARNING)
_STARTUP_TRIALS = 6
_TRIES = 40


class Proposals:
    """Proposes candidates of a space, from the merits of those measured so far.

    It uses the tree-structured Parzen estimator for one objective and NSGA-II for several. Equal
    seeds and equal merits give equal proposals. The trials are kept in memory: a resumed study
    replays its measurements.
    """

    def __init__(self, space: Space, objectives: int, seed: int) -> None:
        self._space = space
        self._distributions: dict[str, optuna.distributions.BaseDistribution] = {
            _name(key): optuna.distributions.IntDistribution(0, len(values) - 1)
            for key, values in space.dimensions.items()
        }
        with warnings.catch_warnings():
            # Multivariate sampling is marked experimental, and has been since 2020.
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = (
                optuna.samplers.TPESampler(
                    multivariate=True,
                    n_startup_trials=_STARTUP_TRIALS,
                    seed=seed,
                )
                if objectives == 1
                else optuna.samplers.NSGAIISampler(population_size=8, seed=seed)
            )
        self._study = optuna.create_study(directions=["maximize"] * objectives, sampler=sampler)

    def add(self, candidate: Candidate, merits: Sequence[float], violation: float = 0.0) -> None:
        """Record the merits of a candidate; a violation above 0 marks it as infeasible."""
        params = {
            _name(key): values.index(value)
            for (key, values), (_, _, value) in zip(
                self._space.dimensions.items(), candidate.settings, strict=True
            )
        }
        self._study.add_trial(
            optuna.trial.create_trial(
                params=params,
                distributions=self._distributions,
                values=list(merits),
                constraints={"violation": violation},
            )
        )

    def ask(self, count: int, known: Sequence[Candidate]) -> list[Candidate]:
        """Return up to `count` candidates that are not in `known`."""
        found: list[Candidate] = []
        for _ in range(_TRIES):
            if len(found) == count:
                break
            trial = self._study.ask(self._distributions)
            candidate = normalized(
                {
                    key: values[trial.params[_name(key)]]
                    for key, values in self._space.dimensions.items()
                }
            )
            self._study.tell(trial, state=optuna.trial.TrialState.FAIL)
            if candidate not in known and candidate not in found:
                found.append(candidate)
        return found


def _name(key: tuple[str, str]) -> str:
    return "/".join(key)
