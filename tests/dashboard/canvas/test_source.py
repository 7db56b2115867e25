"""The bytes of a tile, and a body that was cut off on its way."""

import base64

import pytest

from tests.dashboard.canvas.stage import tile

pytestmark = pytest.mark.browser

DECODE = """(text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  try {
    const { a, b, layers } = Cascade.ServerSource.decodeTile(bytes.buffer);
    return { a, b, layers: Object.fromEntries(Object.entries(layers).map(([k, v]) => [k, [v.rows, v.cols, v.code, [...v.data]]])) };
  } catch (error) {
    return error instanceof Cascade.Problem ? error.kind : String(error);
  }
}"""


def decoded(page, body):
    return page.evaluate(DECODE, base64.b64encode(body).decode())


def test_a_tile_is_read_as_it_was_written(plain):
    got = decoded(plain, tile(3, 99, 5, ["waited", "cpu"], 3, value=7))
    assert (got["a"], got["b"]) == (3, 99)
    assert got["layers"]["waited"] == [[0, 1, 2], 5, "sqrt", [7] * 15]
    assert got["layers"]["cpu"][0] == ["median", "p10", "p90", "min", "max", "num"]


@pytest.mark.parametrize("length", [0, 3, 20, -2, -9])
def test_a_torn_tile_is_a_problem_in_words(plain, length):
    body = tile(0, 10, 5, ["waited"], 3)
    assert decoded(plain, body[:length]) == "bad"


def test_the_servers_own_encoder_is_understood(plain):
    np = pytest.importorskip("numpy")
    from dashboard.tiles.encode import Layer, encoded

    values = np.arange(6, dtype=np.uint8).reshape(2, 3)
    body = encoded({"a": 0, "b": 9, "w": 3}, [Layer("waited", [4, 7], "sqrt", values)])
    assert decoded(plain, body)["layers"]["waited"] == [[4, 7], 3, "sqrt", [0, 1, 2, 3, 4, 5]]


ASK = """async ([status, body, t]) => {
  const asked = [];
  const right = window.fetch;
  window.fetch = async (url) => {
    asked.push(url);
    return new Response(body, { status });
  };
  try {
    return [asked, await new Cascade.ServerSource("", "r").state(t)];
  } catch (error) {
    return [asked, error.kind, error.message];
  } finally {
    window.fetch = right;
  }
}"""


@pytest.mark.parametrize(
    ("status", "body", "kind", "text"),
    [
        (422, '{"error":{"message":"torn","where":"a.parquet","hint":"move it"}}', "bad", "torn (a.parquet): move it"),
        (422, "<html>", "bad", "the collector refused the question (422)"),
        (500, '{"error":{"message":"ours","where":null,"hint":null}}', "gone", "the collector answers 500, ours"),
        (503, "", "gone", "the collector answers 503"),
    ],
)  # fmt: skip
def test_what_the_server_says_is_said(plain, status, body, kind, text):
    assert plain.evaluate(ASK, [status, body, 0])[1:] == [kind, text]


def test_no_question_goes_beyond_what_is_answered(plain):
    for t in (2**64, -(2**64)):
        (url,), _ = plain.evaluate(ASK, [200, "{}", t])
        assert abs(int(url.rpartition("=")[2])) == 2**53 - 1
