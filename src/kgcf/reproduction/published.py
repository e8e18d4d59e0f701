"""Figures that others have printed, as they printed them; never mixed with ours. −: not printed."""

from dataclasses import dataclass

_NONE = float("nan")


@dataclass(frozen=True)
class Printed:
    """One row of the KGCF paper's table 1 for one graph; NaN where it prints nothing."""

    mrr: float
    mr: float
    hits1: float
    hits3: float
    hits10: float


def _rows(text: str) -> dict[str, Printed]:
    """Lines of a model's name and five figures."""
    rows = {}
    for line in text.strip().splitlines():
        name, *figures = line.split()
        rows[name] = Printed(*(_NONE if figure == "-" else float(figure) for figure in figures))
    return rows


PUBLISHED: dict[str, dict[str, Printed]] = {
    "fb15k-237": _rows(
        """
        pra .174 3521 .119 .186 .285
        neurallp .240 - - - .362
        drum .343 - .255 .378 .516
        transe .294 357 - - .465
        distmult .241 254 .155 .263 .419
        complex .247 339 .158 .275 .428
        rotate .338 177 .241 .375 .553
        hake .346 - .250 .381 .542
        lowfer .359 - .266 .396 .544
        tucker .358 - .266 .394 .544
        conve .319 276 .232 .351 .492
        rgcn-transe .324 220 .238 .357 .497
        rgcn-distmult .332 242 .242 .366 .508
        rgcn-conve .336 197 .249 .368 .511
        compgcn-transe .335 205 .247 .369 .511
        compgcn-distmult .342 200 .252 .372 .520
        compgcn-conve .351 245 .254 .386 .535
        lte-transe .334 182 .241 .370 .519
        lte-distmult .335 238 .246 .367 .517
        lte-conve .352 249 .262 .385 .533
        nbfnet .415 114 .321 .454 .599
        kgcf .421 124 .326 .461 .603
        """
    ),
    "wn18rr": _rows(
        """
        pra .324 22438 .276 .360 .406
        neurallp .435 - .371 .434 .566
        drum .486 - .425 .513 .586
        transe .226 3384 - - .501
        distmult .429 5110 .391 .442 .490
        complex .438 5261 .412 .464 .512
        rotate .476 3340 .428 .492 .571
        hake .497 - .452 .516 .582
        lowfer .465 - .434 .479 .526
        tucker .470 - .433 .482 .526
        conve .462 4888 .431 .476 .525
        rgcn-transe .198 3272 .066 .263 .478
        rgcn-distmult .393 6980 .350 .413 .481
        rgcn-conve .428 2875 .370 .460 .527
        compgcn-transe .206 3182 .064 .281 .502
        compgcn-distmult .430 4559 .395 .439 .513
        compgcn-conve .469 3065 .433 .480 .543
        lte-transe .211 3290 .022 .362 .521
        lte-distmult .437 4485 .403 .447 .517
        lte-conve .472 3434 .436 .485 .544
        nbfnet .551 636 .497 .573 .666
        kgcf .553 628 .503 .577 .670
        """
    ),
}
INFERENCE = {
    "rgcn-distmult": "13 s",
    "compgcn-distmult": "5 s",
    "lte-distmult": "11 s",
    "neurallp": "2.1 min",
    "nbfnet": "4.0 min",
    "kgcf": "4.2 min",
}  # the paper's table 4: FB15k-237, one V100; it does not say which decoders
SLIPS = (
    "Slips of the printed table that its own sources show: RotatE's H@10 on FB15k-237 is .533 there, TuckER's H@1 on "
    "WN18RR .443; ConvE's row is that of none of the cited sources; TransE, DistMult and ComplEx are runs of 2017–18, "
    "two to ten points below what later ones reach."
)
