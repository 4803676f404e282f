"""Whether a proven server answers as the model should: questions, a needle, tool calls.

Everything goes through the chat endpoint, greedily, since raw generation skips the template.
Being wrong here fails nothing: a server that serves another model than was asked for still serves,
and the findings say how its answers compare with a reference's.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unicodedata import category

from sglsweep.attempt import ProofStep, Quality, QualityAnswer, StepState
from sglsweep.probe.reading import generation
from sglsweep.probe.refusals import OK, Context, error_status, refused, words
from sglsweep.probe.requests import chat, why_no_chat
from sglsweep.probe.steps import QUALITY, asking
from sglsweep.probe.target import QualityQuestion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sglsweep.keeper_files import HttpRequest, HttpResponse
    from sglsweep.probe.proof import Asked
    from sglsweep.probe.steps import ProofStepPlan
    from sglsweep.probe.target import QualitySettings, Target

USUAL_QUESTIONS = tuple(
    QualityQuestion(prompt, contains)
    for prompt, contains in (
        ("What is 17 + 26? Answer with the number.", ("43",)),
        ("What is 12 times 12? Answer with the number.", ("144",)),
        ("What is 1000 minus 1? Answer with the number.", ("999",)),
        ("What is the capital of France? Answer with the name.", ("Paris",)),
        ("What is the capital of Japan? Answer with the name.", ("Tokyo",)),
        ("Which planet is closest to the sun? Answer with the name.", ("Mercury",)),
        ("What is the chemical symbol of gold?", ("Au",)),
        ("How many days has a leap year? Answer with the number.", ("366",)),
        ("Who wrote Romeo and Juliet?", ("Shakespeare",)),
        ("Spell the word 'stone' backwards.", ("enots", "e-n-o-t-s", "e n o t s")),
        ("Which number comes next: 2, 4, 8, 16? Answer with the number.", ("32",)),
        ("Translate 'good morning' into French.", ("bonjour",)),
    )
)
HIDDEN_NUMBER = "73914"
NEEDLE = f"The harbour master's secret number is {HIDDEN_NUMBER}. "
NEEDLE_QUESTION = "What is the harbour master's secret number? Answer with the number."
WEATHER = "What is the weather in Paris right now? Use the tool."
WEATHER_TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
_DEPTHS = (10, 50, 90)
_FILLER = (
    "On day {n} the boats left at dawn and came back with {m} baskets of fish, which were "
    "weighed, salted and carried to the market behind the church. "
)
_MEASURED_LETTERS = 600
_SURE = 0.95
"""Share of the stated context that is filled: letters for each token are measured, not known."""
_KEPT_TEXT = 2000
_MOST_AT_ONCE = 4
_NEEDLE_TOKENS = 64


@dataclass(frozen=True, slots=True)
class _Ask:
    """One question as it was sent."""

    id: str
    kind: str
    prompt: str
    contains: tuple[str, ...]


class Questioning:
    """The questions to one server: what to ask next, and what was answered so far."""

    def __init__(self, target: Target, settings: QualitySettings) -> None:
        self._target = target
        self._settings = settings
        self._asks: dict[str, _Ask] = {}
        self._answers: list[QualityAnswer] = []
        self._notes: list[str] = []
        self._left = ["questions", *(["size", "needle"] if settings.needle else [])]
        self._letters_each: float | None = None
        self.broke: ProofStep | None = None
        why = "the weights are random" if target.has_random_weights else why_no_chat(target)
        if why:
            self._left = []
            self._notes = [why]

    def next(self) -> ProofStepPlan | None:
        """Return what to ask next; None at the end, and when the server broke."""
        while self._left and self.broke is None:
            requests = self._requests(self._left[0])
            if requests:
                return asking(
                    QUALITY,
                    f"a question of quality ({self._left[0]})",
                    *requests,
                    concurrency=min(_MOST_AT_ONCE, self._target.max_running or _MOST_AT_ONCE),
                    more_s=30.0 * len(requests),
                )
            self._left.pop(0)
        return None

    def judge(self, plan: ProofStepPlan, asked: Asked) -> None:
        """Take the answers."""
        what = self._left.pop(0)
        context = Context(
            target=self._target,
            listener=asked.listener,
            server_alive=asked.server_alive,
            log_is_fatal=asked.log_is_fatal,
        )
        judged = refused(plan, asked.responses, context)
        if judged is not None and judged.state is StepState.FAILED:
            self.broke = judged
        elif judged is not None:
            self._notes.append(f"{what}: {judged.detail}")
        elif what == "size":
            self._measure(asked.responses)
        else:
            self._answers += [self._answer(r) for r in asked.responses if r.id in self._asks]

    @property
    def quality(self) -> Quality:
        """What was answered, for the record."""
        return Quality(answers=tuple(self._answers), note="; ".join(self._notes))

    @property
    def step(self) -> ProofStep:
        """What it says of the server, beside the steps of the proof."""
        if self.broke is not None:
            return self.broke
        if not self._answers:
            state, said = StepState.NOT_APPLICABLE, "; ".join(self._notes) or "nothing was asked"
            return ProofStep(name=QUALITY, state=state, detail=said)
        right = self.quality.right
        said = f"{right} of {len(self._answers)} right"
        state = StepState.OK if right else StepState.SUSPECT
        return ProofStep(name=QUALITY, state=state, detail="; ".join([said, *self._notes]))

    def _requests(self, what: str) -> list[HttpRequest]:
        match what:
            case "questions":
                return [*self._questions(), *self._tools()]
            case "size":
                text = _filler(_MEASURED_LETTERS)
                return [chat(self._target, "size", text, max_tokens=1)]
            case _:
                return self._needles()

    def _questions(self) -> list[HttpRequest]:
        known = self._settings.questions or USUAL_QUESTIONS
        return [
            self._ask(f"q{n}", "question", q.prompt, q.contains)
            for n, q in enumerate(known, start=1)
        ]

    def _ask(
        self, name: str, kind: str, prompt: str, contains: tuple[str, ...], **more: object
    ) -> HttpRequest:
        shown = NEEDLE_QUESTION if kind == "needle" else prompt
        self._asks[name] = _Ask(name, kind, shown, contains)
        wanted = _NEEDLE_TOKENS if kind == "needle" else self._settings.tokens
        tokens = max(wanted, self._settings.tokens if self._target.reasoning_parser else 0)
        return chat(self._target, name, prompt, max_tokens=tokens, **more)

    def _tools(self) -> list[HttpRequest]:
        if not self._settings.tools:
            return []
        if not self._target.tool_parser:
            self._notes.append("tool calls: no --tool-call-parser")
            return []
        tools = [WEATHER_TOOL]
        return [
            self._ask("tool-call", "tool", WEATHER, ("Paris",), tools=tools),
            self._ask(
                "tool-unneeded",
                "no-tool",
                "What is 2 + 3? Do not use a tool.",
                ("5",),
                tools=tools,
            ),
        ]

    def _needles(self) -> list[HttpRequest]:
        wanted, longest = self._settings.needle or 0, self._target.longest
        if self._letters_each is None:
            return []
        if longest is not None and wanted > longest:
            self._notes.append(f"needle: {wanted:,} tokens asked for, a request holds {longest:,}")
            return []
        room = max(_SURE * wanted - _NEEDLE_TOKENS, 1.0)
        text = _filler(int(room * self._letters_each) - len(NEEDLE + NEEDLE_QUESTION))
        return [
            self._ask(
                f"needle-{d}",
                "needle",
                f"{_with_needle(text, d)}\n\n{NEEDLE_QUESTION}",
                (HIDDEN_NUMBER,),
            )
            for d in _DEPTHS
        ]

    def _measure(self, responses: Sequence[HttpResponse]) -> None:
        answer = generation(responses[0])
        if answer is None or not answer.prompt_tokens:
            self._notes.append("needle: the server does not count the tokens of a prompt")
            return
        self._letters_each = _MEASURED_LETTERS / answer.prompt_tokens

    def _answer(self, response: HttpResponse) -> QualityAnswer:
        ask = self._asks[response.id]
        made = QualityAnswer(id=ask.id, kind=ask.kind, prompt=ask.prompt)
        if error_status(response) != OK:
            return _replace(made, None, "", f"refused: {words(response)}")
        said = _Said.of(response.body)
        if said is None:
            return _replace(made, None, "", "the answer cannot be read")
        right = _is_right(ask, said)
        if not right and said.is_cut:
            return _replace(made, None, said.text, f"unfinished after {said.tokens:,} tokens")
        detail = f"{said.prompt_tokens:,} tokens" if ask.kind == "needle" else ""
        return _replace(made, right, said.text, detail)


def _replace(made: QualityAnswer, right: bool | None, text: str, detail: str) -> QualityAnswer:  # noqa: FBT001 - a verdict, not a switch
    return QualityAnswer(
        id=made.id,
        kind=made.kind,
        prompt=made.prompt,
        right=right,
        text=text[:_KEPT_TEXT],
        detail=detail,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """An answer of the chat endpoint: what counts as its last word, and what it called."""

    text: str = ""
    calls: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    is_cut: bool = False
    tokens: int = 0
    prompt_tokens: int = 0

    @classmethod
    def of(cls, body: str) -> _Said | None:
        """Read an answer; None where it cannot be read."""
        try:
            said = json.loads(body)
            choice = said["choices"][0]
            message, usage = choice["message"], said.get("usage") or {}
            return cls(
                # Thoughts are no answer; without a reasoning parser they stand in the content.
                text=(message.get("content") or "").rpartition("</think>")[2].strip(),
                calls=tuple(_call(c) for c in message.get("tool_calls") or ()),
                is_cut=choice.get("finish_reason") == "length",
                tokens=usage.get("completion_tokens") or 0,
                prompt_tokens=usage.get("prompt_tokens") or 0,
            )
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            return None


def _call(raw: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    function = raw.get("function") or {}
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except ValueError:
        arguments = {}
    return str(function.get("name")), arguments if isinstance(arguments, dict) else {}


def _is_right(ask: _Ask, said: _Said) -> bool:
    if ask.kind == "tool":
        return any(
            name == "get_weather" and holds(str(arguments.get("city")), ask.contains)
            for name, arguments in said.calls
        )
    return holds(said.text, ask.contains) and not (ask.kind == "no-tool" and said.calls)


def holds(text: str, contains: Sequence[str]) -> bool:
    """Tell whether a text has one of some words, whole and without regard to case."""
    return any(
        not _joined(text[: found.start()][-1:], found[0][:1])
        and not _joined(found[0][-1:], text[found.end() :][:1])
        for word in contains
        for found in re.finditer(re.escape(word), text, re.IGNORECASE)
    )


def _joined(one: str, other: str) -> bool:
    """Tell whether two neighbours are of one word; scripts without capitals set no blanks."""
    return all(
        letter and (letter == "_" or (letter.isalnum() and category(letter) != "Lo"))
        for letter in (one, other)
    )


def _filler(letters: int) -> str:
    pieces: list[str] = []
    size, day = 0, 1
    while size < letters:
        pieces.append(_FILLER.format(n=day, m=17 * day % 90 + 10))
        size += len(pieces[-1])
        day += 1
    return "".join(pieces)[: max(letters, 1)]


def _with_needle(text: str, depth: int) -> str:
    """Put the needle between two sentences at so many percent of the text."""
    place = text.find(". ", len(text) * depth // 100)
    place = len(text) if place < 0 else place + 2
    return text[:place] + NEEDLE + text[place:]
