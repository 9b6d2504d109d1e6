"""Release contracts: what a run must equal to be official, as one complete signed tuple.

A contract can't describe a diagnostic run (its subjects and rounds are the edition's own), nor a simulated one (no such provider or
search can be written into it), nor leave anything open (every field is there, and every role names the models that may answer). So
what isn't complete and real equals no contract, whoever signs it. Whether a run equals one is ``qualification``'s business.
"""

from typing import Annotated, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from deep20ray.answers import Role
from deep20ray.canonical import canonical, sha256
from deep20ray.editions import edition
from deep20ray.errors import UnknownEdition
from deep20ray_artifacts.documents import Closed, Predicate
from deep20ray_artifacts.statement import Name, Sha256

_LIST = Field(strict=False)
_NOT_REAL: Final = frozenset({"simulator", "embedded"})

ContractId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,63}$")]


def _real(name: str) -> str:
    if name in _NOT_REAL:
        raise ValueError("a contract is about real models and a real search")
    return name


Real = Annotated[Name, AfterValidator(_real)]


class RoleTerms(Closed):
    """One role's model, prompt and parameters, and the names under which the model may answer."""

    provider: Real
    requested_model: Name
    effort: Name | None
    sampling: Name
    """Canonical JSON, as in table ``roles``."""
    max_output_tokens: Annotated[int, Field(ge=1, lt=2**53)]
    prompt_revision: Name
    prompt_sha256: Sha256
    config_sha256: Sha256
    """Of all parameters, endpoint included, as the plan publishes them."""
    served_models: Annotated[tuple[Name, ...], _LIST, Field(min_length=1)]


class GuesserTerms(RoleTerms):
    """A registered Guesser: a model under test."""

    model_id: Name


class SubjectTerms(Closed):
    """Who is asked about, and the digest of what adjudicators are told."""

    subject_id: Name
    category: Name
    subject_sha256: Sha256


class SupportTerms(Closed):
    """The four roles that every run of the contract shares."""

    oracle: RoleTerms
    reviewer: RoleTerms
    judge: RoleTerms
    validator: RoleTerms

    def of(self, role: Role) -> RoleTerms:
        """One role's."""
        terms: RoleTerms = getattr(self, role.value)
        return terms


class Contract(Predicate):
    """A release contract."""

    predicate_type: ClassVar[str] = "https://deep20ray.example/attestations/release-contract/v1"
    noun: ClassVar[str] = "release contract"

    contract_schema: Literal["1"]
    id: ContractId
    edition: Name
    edition_sha256: Sha256
    protocol_version: Sha256
    run_seed: Name
    scoring: Literal["average-then-average-v1"]
    policy: Name
    cohort: Name
    cohort_sha256: Sha256
    subjects: Annotated[tuple[SubjectTerms, ...], _LIST]
    rounds: Annotated[int, Field(ge=1)]
    search_backend: Real
    search_sha256: Sha256
    """Of the plan's whole section ``search``."""
    fetch_policy: Name
    reuse_policy: Name
    support: SupportTerms
    guessers: Annotated[tuple[GuesserTerms, ...], _LIST, Field(min_length=1)]

    @model_validator(mode="after")
    def _whole(self) -> Self:
        try:
            rules = edition(self.edition)
        except UnknownEdition as error:
            raise ValueError(str(error)) from None
        if self.edition_sha256 != rules.digest:
            raise ValueError(f"edition_sha256 isn't that of edition {rules.id}")
        if self.policy not in {str(policy) for policy in rules.policies}:
            raise ValueError(f"edition {rules.id} has no policy {self.policy!r}")
        subjects = [subject.subject_id for subject in self.subjects]
        if (len(subjects), self.rounds) != (rules.subjects, rules.rounds) or len(set(subjects)) != len(subjects):
            raise ValueError(
                f"a release of edition {rules.id} has {rules.subjects} subjects in {rules.rounds} rounds each; all else is diagnostic"
            )
        models = [guesser.model_id for guesser in self.guessers]
        if len(set(models)) != len(models):
            raise ValueError("a model is registered twice")
        return self

    @property
    def subject(self) -> tuple[str, str]:
        """Itself: its id and the digest of what it says."""
        return f"release-contract/{self.id}", sha256(canonical(self.model_dump(mode="json")))

    def guesser(self, model_id: str) -> GuesserTerms | None:
        """What is registered under a model's id."""
        return next((guesser for guesser in self.guessers if guesser.model_id == model_id), None)
