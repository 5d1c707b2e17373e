from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch.utils import _pytree as pytree

from tritonpy import InvalidArgument
from tritonpy_backend_torch.tree_spec import input_name, output_name, tree_leaves

keys = st.text("abc_", min_size=1, max_size=3)
trees = st.recursive(
    st.just(0),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
    ),
)


def at(tree, way):
    for key in way:
        tree = tree[key]
    return tree


@given(trees)
def test_leaves_are_in_torchs_order(tree):
    flat, spec = pytree.tree_flatten(tree)
    paths = tree_leaves(pytree.treespec_dumps(spec))
    assert len(paths) == len(flat)
    assert all(at(tree, way) == 0 for way in paths)
    numbered = pytree.tree_unflatten(range(len(flat)), spec)
    assert [at(numbered, way) for way in paths] == list(range(len(flat)))


def test_names_are_those_of_triton():
    assert [input_name(way) for way in ((0, 0), (0, 2, "key"), (1, "mask"))] == [
        "ARGS[0]",
        "ARGS[2][key]",
        "KWARGS[mask]",
    ]
    assert [output_name(way) for way in ((), (1,), ("a", 0))] == [
        "RESULT",
        "RESULT[1]",
        "RESULT[a][0]",
    ]


def test_other_containers_are_refused():
    spec = [1, {"type": "collections.deque", "context": "null", "children_spec": []}]
    with pytest.raises(
        InvalidArgument,
        match=r"takes or returns a collections\.deque; only tensors, tuples, lists and dictionaries",
    ):
        tree_leaves(json.dumps(spec))
