"""Build HTML in which nothing is markup unless this package wrote it.

What agents, users and judges wrote is untrusted. Every function here escapes
every text, except a :class:`Safe` one, which only this package makes. So a
view is built from :func:`tag`, :func:`join` and :func:`table`, never from
f-strings. Joining a ``Safe`` with a plain text gives a plain text, which is
escaped when it is used: a slip shows as visible tags, never as a script.

Colours, layout and pictures live elsewhere (the report's style sheet and
:mod:`evalkit.plots`). Nothing is imported: frames are read by duck typing.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

__all__ = ["Safe", "cell", "clip", "escape", "join", "table", "tag", "visible"]

Formats = Mapping[str, Callable[[Any], object]]

CLIP: Final = 280
"""Characters of a text that are shown before the rest is folded away."""
LONGEST: Final = 20_000
"""Characters of a text that are kept at all; the rest is counted."""

_VOID = frozenset({"br", "hr", "img"})
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*\Z")
_URLS = frozenset({"href", "src", "action", "formaction", "xlink-href", "srcdoc", "style"})
# C0 and C1 controls but tab and newline, DEL, lone surrogates, the line and
# paragraph separators, the byte order mark, and the marks that reorder text.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


class Safe(str):
    """HTML that this package wrote; shown as it is.

    Examples
    --------
    >>> escape(Safe("<b>bold</b>"))
    '<b>bold</b>'
    """

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return str(self)


def visible(text: str) -> str:
    r"""Replace characters that cannot be seen by ones that can.

    Control characters become their pictures, and lone surrogates, separators
    and marks that reorder text their escapes. Tab and newline stay.

    Examples
    --------
    >>> visible("a\x00b\ud800\u202e")
    'a␀b\\ud800\\u202e'
    """
    return _HIDDEN.sub(_picture, text)


def _picture(match: re.Match[str]) -> str:
    """Return what stands for one hidden character."""
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\\u{code:04x}"


def escape(value: object) -> Safe:
    """Return ``value`` as text that HTML shows literally.

    Parameters
    ----------
    value
        Anything; a :class:`Safe` is returned unchanged.

    Examples
    --------
    >>> escape('<img src=x onerror="alert(1)">')
    '&lt;img src=x onerror=&quot;alert(1)&quot;&gt;'
    """
    if isinstance(value, Safe):
        return value
    return Safe(html.escape(visible(str(value)), quote=True))


def join(parts: Iterable[object], *, sep: str = "") -> Safe:
    """Join parts into one ``Safe``, escaping each and the separator."""
    return Safe(escape(sep).join(escape(part) for part in parts))


def tag(name: str, *children: object, **attributes: object) -> Safe:
    """Build one element; children and attribute values are escaped.

    Parameters
    ----------
    name
        Element name, such as ``p``.
    *children
        Texts or ``Safe`` elements.
    **attributes
        A trailing underscore is dropped (``class_``), others become hyphens
        (``aria_label``). ``True`` is a bare attribute; ``None`` and ``False``
        leave it out.

    Raises
    ------
    ValueError
        For an event handler or an attribute that holds a URL or a style: no
        view needs one, and all of them can run or fetch something.

    Examples
    --------
    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    start = f"<{_name(name)}{''.join(_attributes(attributes))}>"
    return Safe(start) if name in _VOID else Safe(f"{start}{join(children)}</{name}>")


def _name(name: str) -> str:
    """Return ``name`` if an element or attribute may be called so."""
    if not _NAME.match(name) or name in {"script", "style", "iframe", "object", "embed"}:
        raise ValueError(f"{name!r} is no element or attribute that a view may write")
    return name


def _attributes(attributes: Mapping[str, object]) -> Iterator[str]:
    """Yield each attribute with its leading space."""
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if name.lower().startswith("on") or name.lower() in _URLS:
            raise ValueError(f"a view may not write the attribute {name!r}")
        if value is not None and value is not False:
            yield f" {_name(name)}" if value is True else f' {_name(name)}="{_quoted(value)}"'


def _quoted(value: object) -> str:
    """Escape an attribute's value; even ``Safe`` text may not end it."""
    return html.escape(visible(str(value)), quote=True)


def clip(text: object, *, limit: int = CLIP) -> Safe:
    """Escape a text, folding a long one behind its beginning.

    Parameters
    ----------
    text
        A ``Safe`` is never clipped.
    limit
        Characters shown before the fold. At most 20,000 are kept behind it;
        how many are left out is said.

    Examples
    --------
    >>> clip("abcdef", limit=3)
    '<details class="more"><summary>abc…</summary>abcdef</details>'
    """
    plain = str(text)
    if isinstance(text, Safe) or len(plain) <= limit:
        return escape(text)
    rest = len(plain) - LONGEST
    kept = plain if rest <= 0 else f"{plain[:LONGEST]} … and {rest:,} more characters"
    return tag("details", tag("summary", f"{plain[:limit]}…"), kept, class_="more")


def table(
    rows: Any,
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    caption: object = "",
    formats: Formats | None = None,
    numbers: Collection[str] = (),
    limit: int | None = None,
    class_: str = "",
) -> Safe:
    """Build a table in which every text is escaped unless it is ``Safe``.

    Parameters
    ----------
    rows
        A DataFrame, or an iterable of mappings.
    columns
        Names of the columns to show, or a mapping from name to heading; all
        columns by default. The first one names its row.
    caption
        What the table shows, read out before it.
    formats
        For a column's name, the function that makes text of its known values.
        Without one, numbers keep four significant digits.
    numbers
        Columns to align right even though their cells are texts.
    limit
        Show so many rows and say how many are left out.
    class_
        CSS class of the table.

    Notes
    -----
    Missing values are an en dash titled "not known". Columns of numbers are right
    aligned; control characters are made visible; long texts are folded.

    Examples
    --------
    >>> table([{"id": "<a>", "n": 3}])  # doctest: +ELLIPSIS
    '<table...<th scope="row">&lt;a&gt;</th><td class="num">3</td>...</table>'
    """
    records = _records(rows)
    shown = list(records if limit is None else islice(records, max(limit, 0)))
    left_out = sum(1 for _ in records)
    headings = _headings(rows, shown, columns)
    numeric = {name for name in headings if _is_numeric(row.get(name) for row in shown)}
    numeric |= set(numbers)
    body = [_row(row, headings, numeric=numeric, formats=formats or {}) for row in shown]
    return tag(
        "table",
        tag("caption", caption) if caption else Safe(),
        tag("thead", _head(headings, numeric)),
        tag("tbody", *body),
        _foot(left_out, width=len(headings)),
        class_=class_ or None,
    )


def _records(rows: Any) -> Iterator[Mapping[str, Any]]:
    """Yield each row as a mapping, whatever the rows came as."""
    if hasattr(rows, "itertuples"):
        names = [str(name) for name in rows.columns]
        tuples = rows.itertuples(index=False, name=None)
        return (dict(zip(names, row, strict=True)) for row in tuples)
    return iter(rows)


def _headings(
    rows: Any, shown: Sequence[Mapping[str, Any]], columns: Mapping[str, str] | Sequence[str] | None
) -> dict[str, str]:
    """Map each shown column to its heading."""
    if isinstance(columns, Mapping):
        return dict(columns)
    if columns is None:
        columns = [str(name) for name in getattr(rows, "columns", ())]
        columns = columns or list(dict.fromkeys(name for row in shown for name in row))
    return {name: name.replace("_", " ") for name in columns}


def _head(headings: Mapping[str, str], numeric: set[str]) -> Safe:
    """Build the row of headings."""
    cells = (
        tag("th", text, scope="col", class_="num" if name in numeric else None)
        for name, text in headings.items()
    )
    return tag("tr", *cells)


def _row(
    row: Mapping[str, Any], headings: Mapping[str, str], *, numeric: set[str], formats: Formats
) -> Safe:
    """Build one row, whose first cell is its heading."""
    cells = []
    for position, name in enumerate(headings):
        text = cell(row.get(name), formats.get(name))
        class_ = "num" if name in numeric else None
        scope = "row" if position == 0 else None
        cells.append(tag("th" if scope else "td", text, scope=scope, class_=class_))
    return tag("tr", *cells)


def _foot(left_out: int, *, width: int) -> Safe:
    """Say how many rows are not shown."""
    if not left_out:
        return Safe()
    return tag("tfoot", tag("tr", tag("td", f"and {left_out:,} more rows", colspan=max(width, 1))))


def cell(value: Any, form: Callable[[Any], object] | None = None) -> Safe:
    """Show one value as a table does.

    Parameters
    ----------
    value
        Anything: missing values are an en dash, lists are joined by commas.
    form
        Makes the text of a value that is known.

    Examples
    --------
    >>> cell(float("nan"))
    '<span class="unknown" title="not known">–</span>'
    """
    value = _plain(value)
    if _is_missing(value):
        return tag("span", "–", class_="unknown", title="not known")
    return clip(_text(value) if form is None else form(value))


def _plain(value: Any) -> Any:
    """Turn a NumPy scalar into the Python value that it holds."""
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0
    return value.item() if is_scalar and hasattr(value, "item") else value


def _is_missing(value: Any) -> bool:
    """Tell whether a value stands for "not known": None, NaN, NaT, NA."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    return isinstance(value, float) and math.isnan(value)


def _is_numeric(values: Iterable[Any]) -> bool:
    """Tell whether all known values of a column are numbers, and any is."""
    known = [value for value in map(_plain, values) if not _is_missing(value)]
    return bool(known) and all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in known
    )


def _text(value: Any) -> object:
    """Write a value that is known as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple | set | frozenset):
        return ", ".join(str(_text(item)) for item in value)
    return _json(value) if isinstance(value, dict) else str(value)


def _json(value: Mapping[Any, Any]) -> str:
    """Write a mapping as JSON where that is possible."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):  # keys that JSON cannot have, or a cycle
        return str(value)
