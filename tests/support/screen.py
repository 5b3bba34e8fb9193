# SPDX-License-Identifier: Apache-2.0
"""What a terminal shows of the text that it gets, which wraps lines anew when its width changes, as most do."""
import re

PIECES = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|(.)", re.DOTALL)


class Screen:
    """As many rows as it needs. Knows the sequences that Lockstep writes."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = [[]]
        self.goes_on = [False]  # by row: whether its line goes on in the next one
        self.row = self.column = 0
        self.wraps = True

    def feed(self, text):
        for parameter, final, character in PIECES.findall(text):
            if character:
                self._put(character)
            elif final == "K":
                self._clear_row()
            elif final == "J":
                self._clear_row()
                del self.rows[self.row + 1:], self.goes_on[self.row + 1:]
            elif final in "hl" and parameter == "?7":
                self.wraps = final == "h"
            elif final != "m":
                raise ValueError(f"unknown sequence {parameter}{final}")

    def resize(self, columns):
        """The cursor stays with the character that it is on."""
        lines, places = [[]], []
        for number, row in enumerate(self.rows):
            if number == self.row:
                places = [len(lines) - 1, len(lines[-1]) + self.column]
            lines[-1] += row
            if not self.goes_on[number] and number + 1 < len(self.rows):
                lines.append([])
        self.columns = columns
        self.rows, self.goes_on = [], []
        for number, line in enumerate(lines):
            if number == places[0]:
                self.row, self.column = len(self.rows) + places[1] // columns, places[1] % columns
            starts = range(0, max(len(line), 1), columns)
            self.rows += [line[start:start + columns] for start in starts]
            self.goes_on += [start != starts[-1] for start in starts]
        self._reach(self.row)

    @property
    def lines(self):
        lines = [""]
        for row, goes_on in zip(self.rows, self.goes_on):
            lines[-1] += "".join(row)
            if not goes_on:
                lines.append("")
        return [line.rstrip() for line in lines[:-1]]

    def _reach(self, row):
        while len(self.rows) <= row:
            self.rows.append([])
            self.goes_on.append(False)

    def _clear_row(self):
        del self.rows[self.row][self.column:]
        self.goes_on[self.row] = False

    def _put(self, character):
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row += 1
            self._reach(self.row)
        else:
            if self.column == self.columns and self.wraps:
                self.goes_on[self.row] = True
                self.row, self.column = self.row + 1, 0
                self._reach(self.row)
            column = min(self.column, self.columns - 1)
            row = self.rows[self.row]
            row += [" "] * (column + 1 - len(row))
            row[column] = character
            self.column = column + 1
