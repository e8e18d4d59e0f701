"""The decoder g = MLP([x_L(t); q_r; T; k(t)]), the head of unreached candidates, and their place in a ranking."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from kgcf.propagation.layers.encoder import EncoderSettings, make_linear


class Head(nn.Module):
    """A two-layer perceptron over named parts, w · ReLU(Σ_p W_p p + b) + c, whose parts may be projected apart.

    Equal to one linear map of the concatenated parts; projecting a part once and adding it where it is needed
    saves the concatenation: a query is shared by its candidates, a histogram by the entities that have it.
    """

    def __init__(self, parts: dict[str, int], hidden: int, generator: torch.Generator) -> None:
        super().__init__()
        self.parts = {name: width for name, width in parts.items() if width}
        self.hidden = make_linear(sum(self.parts.values()), hidden, generator)
        self.output = make_linear(hidden, 1, generator)

    def project(self, part: str, values: Tensor) -> Tensor:
        """[…, H] a part […, width] times its columns of the first linear map."""
        return functional.linear(values, self.columns(part))

    def columns(self, part: str) -> Tensor:
        """[H, width] the columns of the first linear map that belong to a part."""
        names = list(self.parts)
        begin = sum(self.parts[name] for name in names[: names.index(part)])
        return self.hidden.weight[:, begin : begin + self.parts[part]]

    def finish(self, projected: Tensor) -> Tensor:
        """[…] logits from the sum […, H] of all projected parts."""
        logits: Tensor = self.output(torch.relu(projected + self.hidden.bias))
        return logits.squeeze(-1)  # […, 1] → […]


class Decoder(nn.Module):
    """Logits of candidates from what paths, query, treatment and context say about them.

    The evidence of a candidate t is its last state x_L(t), the query vector q_r, its treatment T ∈ {0, 1}
    where the model has one, and its relation histogram k(t) where `context = decoder`. With
    `context = unreached` a candidate that no path reaches is scored by a head of its own, from q_r, T and
    k(t) alone; otherwise it is scored like the others, with x_L(t) = 0.

    Leading dimensions broadcast: S candidate rows, or [B, 1, D] queries against [1, U, H] contexts.
    """

    def __init__(
        self,
        settings: EncoderSettings,
        relation_count: int,
        generator: torch.Generator,
        hidden: int = 64,
        treatment: bool = False,
    ) -> None:
        super().__init__()
        width, histogram = settings.width, 2 * relation_count
        self.variant = settings.context
        self.treatment = treatment
        parts = {"state": width, "query": width, "treated": int(treatment)}
        self.reached = Head(parts | {"context": histogram if self.variant == "decoder" else 0}, hidden, generator)
        self.unreached: Head | None = None
        if self.variant == "unreached":
            parts = {"query": width, "treated": int(treatment), "context": histogram}
            self.unreached = Head(parts, hidden, generator)

    def forward(
        self,
        states: Tensor,
        q: Tensor,
        treated: Tensor | None = None,
        context: Tensor | None = None,
        reached: Tensor | None = None,
    ) -> Tensor:
        """[S] logits from states [S, D], queries [S, D], treatments [S], projected contexts [S, H] and reached [S].

        `treated` is given iff the model has a treatment, `context` iff the variant is `decoder` or
        `unreached`, `reached` iff it is `unreached`.
        """
        if self.unreached is None:
            return self.evidence(states, q, treated, context)
        assert context is not None, "context = unreached needs the projected histograms"
        assert reached is not None, "context = unreached needs to know who is reached"
        return torch.where(reached, self.evidence(states, q, treated), self.background(q, treated, context))

    def project_context(self, context: Tensor) -> Tensor:
        """[…, H] the relation histograms k(t) […, 2R] in the head that reads them."""
        return functional.linear(context, self.context_weight)

    @property
    def context_weight(self) -> Tensor:
        """[H, 2R] what projects a relation histogram, in the head that reads them."""
        return (self.unreached or self.reached).columns("context")

    def evidence(
        self, states: Tensor, q: Tensor, treated: Tensor | None = None, context: Tensor | None = None
    ) -> Tensor:
        """[S] logits of candidates by the head of the reached: MLP([x_L(t); q_r; T; k(t)])."""
        total = self.reached.project("state", states) + self.reached.project("query", q)
        return self.reached.finish(self._complete(self.reached, total, treated, context))

    def background(self, q: Tensor, treated: Tensor | None, context: Tensor) -> Tensor:
        """[S] logits of candidates by the head of the unreached: MLP([q_r; T; k(t)])."""
        assert self.unreached is not None, "only context = unreached has a head of the unreached"
        total = self.unreached.project("query", q)
        return self.unreached.finish(self._complete(self.unreached, total, treated, context))

    def _complete(self, head: Head, total: Tensor, treated: Tensor | None, context: Tensor | None) -> Tensor:
        if (treated is not None) != self.treatment:
            raise ValueError("The treatment is given to a decoder if and only if it was built with one.")
        if (context is not None) != ("context" in head.parts):
            raise ValueError("The context is given to a head of the decoder if and only if it has a context part.")
        if treated is not None:
            total = total + head.project("treated", treated.to(total).unsqueeze(-1))
        return total if context is None else total + context


def rank_reached_first(logits: Tensor, reached: Tensor) -> Tensor:
    """[…, N] scores for ranking: every reached candidate stands before every unreached one.

    Where the best unreached logit of a query is not at least 1 below its lowest reached one, the query's
    unreached logits all move down by one amount, until it is. Nothing else changes: the order and the ties
    within the reached and within the unreached stay (to rounding), a query's scores depend on no other query and
    are continuous in its logits; losses and probabilities are taken of the logits themselves.
    """
    infinity = torch.tensor(torch.inf, dtype=logits.dtype, device=logits.device)
    lowest = torch.where(reached, logits, infinity).amin(-1, keepdim=True)  # […, 1]
    highest = torch.where(reached, -infinity, logits).amax(-1, keepdim=True)  # […, 1]
    shift = (highest - lowest + 1).clamp(min=0)  # −∞ becomes 0 where one of the two groups is empty
    return torch.where(reached, logits, logits - shift)
