"""An answer's head waits for its body, and for nothing else."""

from __future__ import annotations

from collector.web.one_write import OneWrite


class Wire:
    def __init__(self):
        self.pieces = []
        self.closed = False

    def write(self, data):
        self.pieces.append(data)

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed


HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"


def test_head_and_body_are_one_piece_and_so_is_the_next_answer():
    wire = Wire()
    answers = OneWrite(wire)
    for _ in range(2):
        answers.write(HEAD)
        answers.write(b"ok")
        answers.end()
    assert wire.pieces == [HEAD + b"ok"] * 2


def test_later_pieces_of_a_body_do_not_wait():
    wire = Wire()
    answers = OneWrite(wire)
    for data in (HEAD, b"a", b"b", b"c"):
        answers.write(data)
    assert wire.pieces == [HEAD + b"a", b"b", b"c"]


def test_an_answer_without_a_body_goes_out_when_it_ends():
    wire = Wire()
    answers = OneWrite(wire)
    answers.write(HEAD)
    assert wire.pieces == []
    answers.end()
    assert wire.pieces == [HEAD]


def test_100_continue_goes_out_at_once():
    wire = Wire()
    answers = OneWrite(wire)
    answers.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    answers.write(HEAD)
    answers.write(b"ok")
    assert wire.pieces == [b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"ok"]


def test_what_is_left_goes_out_before_the_end():
    wire = Wire()
    answers = OneWrite(wire)
    answers.write(HEAD)
    answers.close()
    assert wire.pieces == [HEAD]
    assert answers.is_closing()
