"""The regimes are a lattice, and so are their products over groups."""

from __future__ import annotations

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from cascade_runtime.vocabulary.regime import ProductRegime, Regime
from tests.vocabulary.strategies import LAWS, products, regimes

ELEMENTS = {"regime": regimes(), "product": products()}
GROUPS = ["world", "dp0", "dp1", "plan", "a group that nobody named"]

both = pytest.mark.parametrize("elements", ELEMENTS.values(), ids=ELEMENTS.keys())


@both
@given(data=st.data())
@LAWS
def test_less_or_equal_is_a_partial_order(elements, data):
    a, b, c = (data.draw(elements) for _ in range(3))
    assert a <= a
    assert (a <= b and b <= a) == (a == b)
    assert not (a <= b and b <= c) or a <= c
    assert (a >= b) == (b <= a)


@both
@given(data=st.data())
@LAWS
def test_join_is_the_least_upper_and_meet_the_greatest_lower_bound(elements, data):
    a, b, c = (data.draw(elements) for _ in range(3))
    assert a <= a.join(b)
    assert b <= a.join(b)
    assert a.meet(b) <= a
    assert a.meet(b) <= b
    assert (a <= c and b <= c) == (a.join(b) <= c)
    assert (c <= a and c <= b) == (c <= a.meet(b))


@both
@given(data=st.data())
@LAWS
def test_the_laws_of_a_distributive_lattice(elements, data):
    a, b, c = (data.draw(elements) for _ in range(3))
    assert a.join(a) == a.meet(a) == a
    assert a.join(b) == b.join(a)
    assert a.meet(b) == b.meet(a)
    assert a.join(b).join(c) == a.join(b.join(c))
    assert a.meet(b).meet(c) == a.meet(b.meet(c))
    assert a.join(a.meet(b)) == a.meet(a.join(b)) == a
    assert a.meet(b.join(c)) == a.meet(b).join(a.meet(c))
    assert (a <= b) == (a.join(b) == b) == (a.meet(b) == a)


def test_one_group_is_a_chain_numbered_as_in_the_article():
    weakest_first = [Regime.EVENTUAL, Regime.CAUSAL, Regime.STRONG]
    assert sorted(Regime) == weakest_first
    assert [r.level for r in weakest_first] == [1, 2, 3]
    assert [str(r) for r in weakest_first] == ["EVENTUAL", "CAUSAL", "STRONG"]
    assert Regime.EVENTUAL < Regime.CAUSAL < Regime.STRONG
    assert Regime.STRONG > Regime.CAUSAL >= Regime.CAUSAL
    assert not Regime.CAUSAL < Regime.CAUSAL
    assert not Regime.CAUSAL > Regime.CAUSAL


@given(products(), products())
@LAWS
def test_products_are_compared_group_by_group(a, b):
    assert (a <= b) == all(a[g] <= b[g] for g in GROUPS)
    assert (a == b) == all(a[g] is b[g] for g in GROUPS)
    assert all(a.join(b)[g] is a[g].join(b[g]) for g in GROUPS)
    assert all(a.meet(b)[g] is a[g].meet(b[g]) for g in GROUPS)
    assert a.comparable(b) == (a <= b or b <= a)


@given(products(), products())
@LAWS
def test_equal_products_hash_alike(a, b):
    assert (a == b) <= (hash(a) == hash(b))
    assert a != "a product"


def test_a_product_of_chains_is_no_slider():
    pairs = st.tuples(products(), products())
    a, b = find(pairs, lambda pair: not pair[0].comparable(pair[1]))
    assert not (a <= b or b <= a or a == b)
    assert a.meet(b) != a
    assert a.join(b) != b


def test_a_group_that_is_not_named_is_strong():
    relaxed = ProductRegime({"dp0": Regime.CAUSAL})
    assert relaxed["world"] is Regime.STRONG
    assert relaxed == ProductRegime({"dp0": Regime.CAUSAL, "world": Regime.STRONG})
    assert relaxed <= ProductRegime({})


@given(products(), st.lists(st.sampled_from(GROUPS)))
@LAWS
def test_an_operation_is_judged_at_the_meet_of_its_groups(product, touched):
    met = Regime.STRONG
    for group in touched:
        met = met.meet(product[group])
    assert product.at(*touched) is met


def test_products_print_what_is_relaxed():
    assert repr(ProductRegime({"world": Regime.STRONG})) == "ProductRegime(all STRONG)"
    mixed = ProductRegime({"plan": Regime.EVENTUAL, "dp0": Regime.CAUSAL})
    assert repr(mixed) == "ProductRegime(dp0=CAUSAL, plan=EVENTUAL)"
